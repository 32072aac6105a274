"""Seq2Seq: PyTorch's gradients, padding without influence, decoding, and a task that it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.data.tokens import END, PAD, START
from handgrad.errors import ArgumentError, ShapeError
from handgrad.models.decoding import beam, greedy
from handgrad.models.seq2seq import CELLS, ENCODERS, SCORES, Seq2Seq
from tests.layers.gradients import check_destinations, check_gradients
from tests.models.comparing import assert_greedy_is_forward
from tests.rows import rows
from tests.tolerances import assert_close

F64 = np.float64
SOURCE_LENGTHS, TARGET_LENGTHS = np.array([5, 2, 4]), np.array([3, 4, 1])
NOTES: dict[str, Any] = {"encoder": "rnn", "cell": "sigmoid", "feed": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "notes": NOTES,
    "notes-cosine": {**NOTES, "score": "cosine"},
    "dot-lstm-tanh": {"score": "dot", "encoder": "lstm", "cell": "tanh"},
    "cosine-two-layers": {"score": "cosine", "num_layers": 2},
    "learned-states": {"encoder": "lstm", "bias": "recurrent", "learn_h0": True},
    "without-bias": {"encoder": "rnn", "bias": False, "learn_h0": True, "num_layers": 2},
    "wide-decoder": {"decoder_hidden": 7, "encoder": "lstm", "num_layers": 2},
}
ALL = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def model(source_vocabulary: int | None = 9, **settings: Any) -> Seq2Seq:
    """A small model with weights large enough for every gradient to count."""
    rng = np.random.default_rng(6)
    sizes: dict[str, Any] = {"embedding": 3, "hidden": 4, "dtype": F64}
    seq2seq = Seq2Seq(source_vocabulary, 7, rng=rng, **{**sizes, **settings})
    for array in seq2seq.parameters.values():
        array[...] = rng.normal(0.0, 0.5, array.shape)
    return seq2seq


def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A ragged batch, padded with 0."""
    rng = np.random.default_rng(4)
    sources, inputs = rng.integers(1, 9, (3, 5)), rng.integers(1, 7, (3, 4))
    sources[np.arange(5) >= SOURCE_LENGTHS[:, None]] = 0
    inputs[np.arange(4) >= TARGET_LENGTHS[:, None]] = 0
    return sources, SOURCE_LENGTHS.copy(), inputs, TARGET_LENGTHS.copy()


def vectors() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same with sources that are vectors."""
    return (np.random.default_rng(5).standard_normal((3, 5, 3)), *pairs()[1:])


def cotangent(*shape: int) -> np.ndarray:
    return np.random.default_rng(8).standard_normal(shape)


@rows("score", SCORES)
@rows("cell", CELLS)
@rows("encoder", ENCODERS)
def test_gradients_match_differences(score: str, cell: str, encoder: str) -> None:
    check_gradients(model(score=score, cell=cell, encoder=encoder), *pairs(), training=False)


@ALL
def test_gradients_match_differences_in_training(settings: dict[str, Any]) -> None:
    check_gradients(model(**settings, dropout=0.3), *pairs(), training=True)


@ALL
def test_sources_that_are_vectors_have_gradients(settings: dict[str, Any]) -> None:
    check_gradients(model(None, **settings, dropout=0.3), *vectors(), training=True)
    check_destinations(model(None, **settings), *vectors(), training=True)


@ALL
def test_gradients_go_where_they_are_sent(settings: dict[str, Any]) -> None:
    check_destinations(model(**settings), *pairs(), training=True)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"cell": "tanh"}, NOTES])
def test_the_checker_finds_nothing(settings: dict[str, Any]) -> None:
    for report in (
        hg.check(model(**settings), *pairs()),
        hg.check(model(None, **settings), *vectors()),
    ):
        assert report.ok, str(report)


@ALL
def test_pytorch_gives_the_same(settings: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ours = model(**settings)
    sources, source_lengths, inputs, target_lengths = pairs()
    weights = {
        name: torch.tensor(array, requires_grad=True) for name, array in ours.parameters.items()
    }
    expected = replica(torch, ours, weights, settings, sources, source_lengths, inputs)
    logits, cache = ours.forward(*pairs())
    valid = np.arange(4) < target_lengths[:, None]
    assert_close(logits[valid], expected.detach().numpy()[valid], "torch float64", "logits")
    np.testing.assert_array_equal(logits[~valid], 0.0)

    dlogits = cotangent(3, 4, 7)
    _, gradients = ours.backward(dlogits, cache)
    expected.backward(torch.tensor(np.where(valid[:, :, None], dlogits, 0.0)))
    for name, gradient in gradients.items():
        theirs = weights[name].grad
        assert_close(gradient, theirs.numpy(), "torch float64", name)


def replica(
    torch: Any,
    ours: Seq2Seq,
    weights: dict[str, Any],
    settings: dict[str, Any],
    sources: np.ndarray,
    source_lengths: np.ndarray,
    inputs: np.ndarray,
) -> Any:
    """The model in PyTorch's operations, one step of the decoder after the other."""
    nn = torch.nn
    hidden, layers = 4, settings.get("num_layers", 1)
    kind = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[settings.get("encoder", "gru")]
    encoder = kind(3, hidden, layers, bidirectional=True, batch_first=True, dtype=torch.float64)
    start = "encoder."
    own = {name.removeprefix(start): w for name, w in weights.items() if name.startswith(start)}
    biases = {name: w * 0 for name, w in encoder.named_parameters() if name.startswith("bias")}
    states = [own.pop(name)[:, None].repeat(1, 3, 1) for name in ("h0", "c0") if name in own]
    initial = (tuple(states) if len(states) == 2 else states[0]) if states else None
    packed = nn.utils.rnn.pack_padded_sequence(
        nn.functional.embedding(torch.tensor(sources), weights["source.weight"]),
        torch.tensor(source_lengths),
        batch_first=True,
        enforce_sorted=False,
    )
    y, state = torch.func.functional_call(encoder, biases | own, (packed, initial))
    h, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
    last = (state[0] if isinstance(state, tuple) else state)[-1]
    s = torch.tanh(last @ weights["first.weight"].T + weights["first.bias"])
    padding = torch.tensor(np.arange(5) >= source_lengths[:, None])

    cell = settings.get("cell", "gru")
    size, fed = s.shape[1], settings.get("feed", True)
    inside = {"gru": nn.GRUCell, "tanh": nn.RNNCell, "sigmoid": nn.RNNCell}[cell]
    module = inside(2 * hidden + 3 * fed, size, dtype=torch.float64)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    of_cell = {name: weights[f"decoder.cell.{name}"] for name in names}
    logits = []
    for j in range(inputs.shape[1]):
        score = settings.get("score", "additive")
        if score == "additive":
            u = (s @ weights["decoder.score.weight_s"].T)[:, None] + (
                h @ weights["decoder.score.weight_h"].T
            )
            scores = torch.tanh(u) @ weights["decoder.score.v"]
        elif score == "cosine":
            s_hat, h_hat = (x / (x.square().sum(-1, keepdim=True) + 1e-8).sqrt() for x in (s, h))
            scores = (h_hat @ s_hat[:, :, None])[:, :, 0]
        else:
            scores = (h @ s[:, :, None])[:, :, 0] / h.shape[-1] ** 0.5
        alpha = torch.softmax(scores.masked_fill(padding, -torch.inf), dim=-1)
        x = (alpha[:, None] @ h)[:, 0]
        if fed:
            tokens = torch.tensor(inputs[:, j])
            e = nn.functional.embedding(tokens, weights["target.weight"])
            x = torch.cat((x, e), dim=-1)
        if cell == "sigmoid":
            a_input = x @ of_cell["weight_ih"].T + of_cell["bias_ih"]
            s = torch.sigmoid(a_input + s @ of_cell["weight_hh"].T + of_cell["bias_hh"])
        else:
            s = torch.func.functional_call(module, of_cell, (x, s))
        logits.append(s @ weights["head.weight"].T + weights["head.bias"])
    return torch.stack(logits, dim=1)


@ALL
def test_ragged_batches_give_what_every_pair_gives_alone(settings: dict[str, Any]) -> None:
    seq2seq = model(**settings)
    sources, source_lengths, inputs, target_lengths = pairs()
    logits, cache = seq2seq.forward(*pairs())
    dlogits = cotangent(*logits.shape)
    _, gradients = seq2seq.backward(dlogits, cache)
    totals = {name: np.zeros_like(array) for name, array in gradients.items()}
    for n, (s, t) in enumerate(zip(source_lengths, target_lengths, strict=True)):
        own = slice(n, n + 1)
        alone, alone_cache = seq2seq.forward(sources[own, :s], None, inputs[own, :t])
        assert_close(logits[own, :t], alone, "float64")
        assert_close(cache.attention[own, :t, :s], alone_cache.attention, "float64")
        _, parts = seq2seq.backward(dlogits[own, :t], alone_cache)
        totals = {name: total + parts[name] for name, total in totals.items()}
    for name, gradient in gradients.items():
        assert_close(gradient, totals[name], "float64", name)


@ALL
def test_padding_has_no_influence(settings: dict[str, Any]) -> None:
    seq2seq = model(**settings)
    sources, source_lengths, inputs, target_lengths = pairs()
    logits, cache = seq2seq.forward(*pairs())
    dlogits = cotangent(*logits.shape)
    _, gradients = seq2seq.backward(dlogits, cache)
    sources[np.arange(5) >= source_lengths[:, None]] = 5
    inputs[np.arange(4) >= target_lengths[:, None]] = 3
    again, again_cache = seq2seq.forward(sources, source_lengths, inputs, target_lengths)
    np.testing.assert_array_equal(again, logits)
    _, again_gradients = seq2seq.backward(dlogits, again_cache)
    for name, gradient in gradients.items():
        assert_close(again_gradients[name], gradient, "float64", name)


def test_an_empty_source_is_nothing_to_look_at() -> None:
    seq2seq = model()
    sources, _, inputs, target_lengths = pairs()
    logits, cache = seq2seq.forward(sources, np.array([0, 2, 4]), inputs, target_lengths)
    assert np.isfinite(logits).all()
    np.testing.assert_array_equal(cache.attention[0], 0.0)


def test_attention_maps_are_in_the_cache() -> None:
    seq2seq = model()
    _, cache = seq2seq.forward(*pairs())
    ((name, maps),) = seq2seq.attention_maps(cache)
    assert (name, maps.shape) == ("decoder", (3, 1, 4, 5))
    np.testing.assert_array_equal(maps[:, 0], cache.attention)
    assert_close(maps.sum(axis=-1), np.ones((3, 1, 4)), "float64")


@ALL
def test_decoding_gives_what_forward_gives(settings: dict[str, Any]) -> None:
    seq2seq = model(**settings)
    sources, source_lengths, inputs, _ = pairs()
    whole, cache = seq2seq.forward(sources, source_lengths, inputs)
    state = seq2seq.start(sources, source_lengths)
    for t in range(4):
        logits, state = seq2seq.step(inputs[:, t], state)
        assert_close(logits, whole[:, t], "float64")
        assert_close(state.attention, cache.attention[:, t], "float64")


def test_sources_that_are_vectors_can_be_decoded() -> None:
    seq2seq = model(None)
    sources, source_lengths, inputs, _ = vectors()
    whole, _ = seq2seq.forward(sources, source_lengths, inputs)
    logits, _ = seq2seq.step(inputs[:, 0], seq2seq.start(sources, source_lengths))
    assert_close(logits, whole[:, 0], "float64")


@pytest.mark.parametrize("lengths", [SOURCE_LENGTHS, None])
def test_rows_of_a_state_can_be_chosen(lengths: np.ndarray | None) -> None:
    seq2seq = model()
    sources, _, inputs, _ = pairs()
    first, rows = np.array([2, 0]), np.array([1, 1, 0])
    state = seq2seq.choose(seq2seq.start(sources, lengths), first)
    _, state = seq2seq.step(inputs[first, 0], state)
    logits, _ = seq2seq.step(np.array([4, 5, 6]), seq2seq.choose(state, rows))
    chosen = first[rows]
    expected, _ = seq2seq.forward(
        sources[chosen],
        None if lengths is None else lengths[chosen],
        np.column_stack([inputs[chosen, 0], [4, 5, 6]]),
    )
    assert_close(logits, expected[:, -1], "float64")


def test_beams_of_the_same_sources_share_their_memory() -> None:
    seq2seq = model()
    sources, source_lengths, _, _ = pairs()
    state = seq2seq.choose(seq2seq.start(sources, source_lengths), np.array([0, 0, 1, 1]))
    _, state = seq2seq.step(np.array([1, 1, 1, 1]), state)
    swapped = seq2seq.choose(state, np.array([1, 0, 3, 3]))
    assert swapped.memory is state.memory
    np.testing.assert_array_equal(swapped.s, state.s[[1, 0, 3, 3]])


def test_the_most_probable_tokens_are_those_of_forward() -> None:
    sources, source_lengths, _, _ = pairs()
    assert_greedy_is_forward(model(), sources, source_lengths)


def test_beams_of_a_batch_are_those_of_each_source() -> None:
    seq2seq = model()
    sources, source_lengths, _, _ = pairs()
    together = beam(seq2seq, sources, source_lengths, width=3, longest=6)
    for n, (tokens, score) in enumerate(together):
        own = slice(n, n + 1)
        (alone,) = beam(seq2seq, sources[own], source_lengths[own], width=3, longest=6)
        np.testing.assert_array_equal(alone.tokens, tokens)
        assert_close(score, alone.score, "float64")


def test_the_model_of_the_notes_does_not_know_what_it_has_written() -> None:
    seq2seq = model(**NOTES)
    sources, source_lengths, inputs, _ = pairs()
    first, _ = seq2seq.forward(sources, source_lengths, inputs)
    second, _ = seq2seq.forward(sources, source_lengths, (inputs + 1) % 7)
    np.testing.assert_array_equal(first, second)
    assert "target.weight" not in seq2seq.parameters


def test_it_learns_to_turn_a_word_around() -> None:
    rng = np.random.default_rng(0)
    seq2seq = Seq2Seq(10, 10, embedding=8, hidden=24, rng=rng)
    flat = seq2seq.bind()
    gradients = flat.zeros_like()
    optimizer = hg.optimizers.Adam(0.01)
    loss = hg.losses.CrossEntropy(ignore_index=PAD, class_axis=-1)

    def words(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        lengths = rng.integers(2, 5, count)
        sources = rng.integers(4, 10, (count, 4))
        inputs, targets = np.zeros((2, count, 5), np.int64)
        for n, length in enumerate(lengths):
            sources[n, length:] = PAD
            inputs[n, : length + 1] = [START, *sources[n, :length][::-1]]
            targets[n, : length + 1] = [*sources[n, :length][::-1], END]
        return sources, lengths, inputs, lengths + 1, targets

    for _ in range(250):
        *batch, targets = words(32)
        logits, cache = seq2seq.forward(*batch, training=True)
        _, loss_cache = loss.forward(logits, targets)
        seq2seq.backward(loss.backward(loss_cache), cache, gradients=gradients)
        optimizer.step(flat, gradients)
    sources, lengths, *_ = words(50)
    found = greedy(seq2seq, sources, lengths, longest=6)
    right = [
        np.array_equal(written, source[:length][::-1])
        for written, source, length in zip(found, sources, lengths, strict=True)
    ]
    assert np.mean(right) > 0.9


@ALL
def test_summary_counts_every_parameter(settings: dict[str, Any]) -> None:
    seq2seq = model(**settings)
    assert seq2seq.output_shape(((5,), (4,))) == (4, 7)
    rows = seq2seq.rows(((5,), (4,)), "model")
    assert [row.name for row in rows] == [f"model.{name}" for name in seq2seq.layers]
    assert sum(row.parameters for row in rows) == sum(a.size for a in seq2seq.parameters.values())
    assert seq2seq.flops(((5,), (4,))) == sum(row.flops for row in rows)
    assert model(None, **settings).output_shape(((5, 3), (4,))) == (4, 7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"score": "dott"}, "Seq2Seq: score is 'dott'; allowed: additive, cosine, dot"),
        ({"encoder": "cnn"}, "Seq2Seq: encoder is 'cnn'; allowed: rnn, gru, lstm"),
        ({"cell": "lstm"}, "Seq2Seq: cell is 'lstm'; allowed: sigmoid, tanh, gru"),
        ({"hidden": 0}, "Seq2Seq: hidden is 0; allowed: 1 or more"),
        ({"embedding": -1}, "Seq2Seq: embedding is -1; allowed: 1 or more"),
        ({"dropout": 1.5}, "Seq2Seq: dropout is 1.5; allowed: 0 to 1"),
        (
            {"score": "dot", "decoder_hidden": 4},
            "Seq2Seq: decoder_hidden is 4; allowed with score 'dot': 8, twice hidden, because",
        ),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        model(**settings)


def test_inputs_that_are_refused() -> None:
    seq2seq = model()
    sources, source_lengths, inputs, target_lengths = pairs()
    with pytest.raises(ShapeError, match=r"inputs have shape \(2, 4\); allowed: \(3, T\)"):
        seq2seq.forward(sources, source_lengths, inputs[:2], target_lengths[:2])
    with pytest.raises(ShapeError, match=r"sources have shape \(3, 0\); allowed: \(N, S\) with S"):
        seq2seq.forward(sources[:, :0], source_lengths, inputs, target_lengths)
    with pytest.raises(ShapeError, match=r"sources have shape \(3, 5\); allowed: \(N, S, 3\)"):
        model(None).forward(sources.astype(np.float64), source_lengths, inputs, target_lengths)
    with pytest.raises(ArgumentError, match="source: lengths go from 2 to 6; allowed: 0 to 5"):
        seq2seq.forward(sources, np.array([6, 2, 4]), inputs, target_lengths)
    with pytest.raises(ArgumentError, match="target: lengths go from 1 to 5; allowed: 0 to 4"):
        seq2seq.forward(sources, source_lengths, inputs, np.array([3, 5, 1]))
    with pytest.raises(ArgumentError, match="tokens go from 1 to 9; allowed: 0 to 8"):
        seq2seq.forward(sources * 0 + [1, 2, 3, 4, 9], None, inputs)
    with pytest.raises(ShapeError, match=r"allowed: \(\(S,\), \(T,\)\)"):
        seq2seq.output_shape((5,))
