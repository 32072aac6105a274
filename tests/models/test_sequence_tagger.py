"""SequenceTagger: gradients through time, PyTorch's numbers, ragged batches, windows, tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError
from handgrad.models.sequence_tagger import SequenceTagger
from tests.layers.gradients import check_destinations, check_gradients
from tests.ops.cases import leaves, mapped
from tests.tolerances import assert_close

F64 = np.float64
D, H, K = 4, 5, 3
LENGTHS = [3, 6, 0, 4]

CELLS: dict[str, dict[str, Any]] = {
    "lstm": {"cell": "lstm", "proj_size": 2},
    "gru": {"cell": "gru", "num_layers": 2, "dropout": 0.3},
    "rnn": {"cell": "rnn", "bidirectional": True},
    "leaky_rnn": {"cell": "leaky_rnn", "alpha": 0.3},
}
each_cell = pytest.mark.parametrize("settings", CELLS.values(), ids=CELLS)


def model(**settings: Any) -> SequenceTagger:
    return SequenceTagger(D, H, K, rng=np.random.default_rng(16), dtype=F64, **settings)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def some_tokens(batch: int = 4, steps: int = 6) -> np.ndarray:
    return np.random.default_rng(9).integers(0, 7, (batch, steps))


@each_cell
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_gradients(settings: dict[str, Any], lengths: list[int] | None) -> None:
    check_gradients(model(**settings), some(4, 6, D), training=True, lengths=lengths)


@each_cell
def test_gradients_of_tokens(settings: dict[str, Any]) -> None:
    tagger = model(vocabulary=7, **settings)
    check_gradients(tagger, some_tokens(), training=True, lengths=LENGTHS)


def test_gradients_go_where_they_are_sent() -> None:
    check_destinations(model(bidirectional=True), some(4, 6, D), training=True, lengths=LENGTHS)
    tagger = model(vocabulary=7)
    check_destinations(tagger, some_tokens(), training=True, lengths=LENGTHS)


@pytest.mark.parametrize("given", [{}, {"vocabulary": 7}], ids=["numbers", "tokens"])
def test_gradient_of_the_initial_state(given: dict[str, Any]) -> None:
    tagger = model(**given)
    x = some_tokens() if given else some(4, 6, D)
    rng = np.random.default_rng(18)
    state, direction, dfinal = rng.standard_normal((3, 2, 1, 4, H))
    state = tuple(state)
    y, cache = tagger.forward(x, np.array(LENGTHS), state)
    dy = some(*y.shape)
    dinputs, _ = tagger.backward(dy, cache, dstate=tuple(dfinal))
    dstate = dinputs if given else dinputs[1]

    def value(step: float) -> float:
        moved = tuple(a + step * b for a, b in zip(state, direction, strict=True))
        found, kept = tagger.forward(x, np.array(LENGTHS), moved)
        pairs = zip((found, *kept.state), (dy, *dfinal), strict=True)
        return sum(float(np.sum(a * b)) for a, b in pairs)

    expected = (value(1e-5) - value(-1e-5)) / 2e-5
    found = sum(float(np.sum(a * b)) for a, b in zip(dstate, direction, strict=True))
    assert_close(found, expected, "finite differences")


def test_hg_check_finds_nothing_wrong() -> None:
    report = hg.check(model(cell="gru", bidirectional=True), some(4, 6, D), np.array(LENGTHS))
    assert report.ok, str(report)
    report = hg.check(model(vocabulary=7), some_tokens(), np.array(LENGTHS))
    assert report.ok, str(report)


IN_TORCH = {
    "LSTM": {"num_layers": 2, "bidirectional": True},
    "GRU": {},
    "RNN": {"bidirectional": True},
}


@pytest.mark.parametrize(("kind", "settings"), IN_TORCH.items(), ids=IN_TORCH)
@pytest.mark.parametrize("vocabulary", [None, 7], ids=["numbers", "tokens"])
def test_equals_pytorch_s_packed_sequences(
    kind: str, settings: dict[str, Any], vocabulary: int | None
) -> None:
    torch = pytest.importorskip("torch")
    options = {"dtype": torch.float64}
    tagger = model(cell=kind.lower(), vocabulary=vocabulary, **settings)
    theirs = torch.nn.ModuleDict()
    if vocabulary:
        theirs["embedding"] = torch.nn.Embedding(vocabulary, D, **options)
    theirs["recurrent"] = getattr(torch.nn, kind)(D, H, batch_first=True, **settings, **options)
    directions = 2 if settings.get("bidirectional") else 1
    theirs["head"] = torch.nn.Linear(directions * H, K, **options)
    theirs.load_state_dict({name: torch.tensor(a) for name, a in tagger.parameters.items()})

    lengths = [3, 6, 1, 4]
    x = some_tokens() if vocabulary else some(4, 6, D)
    dy = some(4, 6, K)
    y, cache = tagger.forward(x, lengths)
    dx, gradients = tagger.backward(dy, cache)

    their_x = torch.tensor(x, requires_grad=vocabulary is None)
    values = theirs["embedding"](their_x) if vocabulary else their_x
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
    h, _ = rnn.pad_packed_sequence(theirs["recurrent"](packed)[0], batch_first=True)
    real = torch.arange(6) < torch.tensor(lengths)[:, None]
    their_y = theirs["head"](h) * real[:, :, None]
    assert_close(y, their_y.detach(), "torch float64", "scores")
    inputs = ([] if vocabulary else [their_x]) + list(theirs.parameters())
    expected = torch.autograd.grad(their_y, inputs, torch.tensor(dy))
    found = ([] if vocabulary else [dx]) + list(gradients.values())
    for ours, right in zip(found, expected, strict=True):
        assert_close(ours, right, "torch float64", "gradients")


@each_cell
def test_a_ragged_batch_equals_every_sequence_alone(settings: dict[str, Any]) -> None:
    """The padding, of x or of the gradient, has no influence."""
    tagger = model(**settings)
    x, dy = some(4, 6, D), some(4, 6, K)
    for i, length in enumerate(LENGTHS):
        x[i, length:] = dy[i, length:] = np.nan
    y, cache = tagger.forward(x, np.array(LENGTHS))
    dx, gradients = tagger.backward(dy, cache)
    totals = {name: np.zeros_like(array) for name, array in gradients.items()}
    for i, length in enumerate(LENGTHS):
        np.testing.assert_array_equal(y[i, length:], 0)
        np.testing.assert_array_equal(dx[i, length:], 0)
        if length == 0:
            continue
        own_y, own_cache = tagger.forward(x[i : i + 1, :length])
        own_dx, own = tagger.backward(dy[i : i + 1, :length], own_cache)
        assert_close(y[i, :length], own_y[0], "float64")
        assert_close(dx[i, :length], own_dx[0], "float64")
        for ours, alone in zip(leaves(cache.state), leaves(own_cache.state), strict=True):
            assert_close(ours[:, i], alone[:, 0], "float64")
        totals = {name: totals[name] + own[name] for name in totals}
    for name, total in totals.items():
        assert_close(gradients[name], total, "float64", name)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_windows_that_hand_the_state_on_equal_the_whole(cell: str) -> None:
    tagger = model(cell=cell, num_layers=2)
    x, dy = some(3, 7, D), some(3, 7, K)
    y, cache = tagger.forward(x)
    dx, gradients = tagger.backward(dy, cache)

    windows, state = [slice(0, 3), slice(3, 6), slice(6, 7)], None
    caches = []
    for window in windows:
        own_y, own_cache = tagger.forward(x[:, window], state=state)
        assert_close(own_y, y[:, window], "float64")
        state = own_cache.state
        caches.append(own_cache)
    for ours, right in zip(leaves(state), leaves(cache.state), strict=True):
        assert_close(ours, right, "float64")

    totals, dstate = dict.fromkeys(gradients, 0.0), None
    for window, own_cache in reversed(list(zip(windows, caches, strict=True))):
        own_dx, own = tagger.backward(dy[:, window], own_cache, dstate=dstate)
        if window.start > 0:
            own_dx, dstate = own_dx
        assert_close(own_dx, dx[:, window], "float64")
        totals = {name: totals[name] + own[name] for name in totals}
    for name, total in totals.items():
        assert_close(total, gradients[name], "float64", name)


def test_truncated_backpropagation_takes_the_state_as_a_constant() -> None:
    tagger = model()
    x, dy = some(2, 3, D), some(2, 3, K)
    _, before = tagger.forward(some(2, 4, D))
    constant = mapped(np.copy, before.state)
    _, cache = tagger.forward(x, state=before.state)
    _, gradients = tagger.backward(dy, cache, input_gradient=False)
    _, cache = tagger.forward(x, state=constant)
    _, expected = tagger.backward(dy, cache)
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(gradient, expected[name])


def test_the_loss_at_every_step_is_that_of_its_scores() -> None:
    """Yamanishi's (11): softmax − one-hot reaches the head at every step."""
    tagger, x = model(cell="rnn"), some(2, 3, D)
    targets = np.array([[0, 2, 1], [1, 1, 0]])
    scores, cache = tagger.forward(x)
    loss = hg.losses.CrossEntropy(class_axis=-1, reduction="sum")
    _, loss_cache = loss.forward(scores, targets)
    _, gradients = tagger.backward(loss.backward(loss_cache), cache)
    powers = np.exp(scores)
    delta = powers / powers.sum(axis=-1, keepdims=True) - np.eye(K)[targets]
    assert_close(gradients["head.bias"], delta.sum(axis=(0, 1)), "float64")
    (h, _), _ = tagger.recurrent.forward(x)
    assert_close(gradients["head.weight"], np.einsum("ntk,nth->kh", delta, h), "float64")


def test_names_sizes_and_the_table() -> None:
    tagger = model(vocabulary=7, bidirectional=True, cell="gru")
    assert list(tagger.layers) == ["embedding", "recurrent", "head"]
    assert tagger.parameters["recurrent.weight_ih_l0_reverse"].shape == (3 * H, D)
    assert tagger.parameters["head.weight"].shape == (K, 2 * H)
    assert tagger.output_shape((6,)) == (6, K)
    rows = tagger.rows((6,), "tagger")
    assert [(row.name, row.output_shape) for row in rows] == [
        ("tagger.embedding", (6, D)),
        ("tagger.recurrent", (6, 2 * H)),
        ("tagger.head", (6, K)),
    ]
    assert sum(row.parameters for row in rows) == sum(a.size for a in tagger.parameters.values())
    assert tagger.flops((6,)) == sum(row.flops for row in rows)
    assert model().output_shape((6, D)) == (6, K)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cell": "ltsm"}, "SequenceTagger: cell is 'ltsm'; allowed: lstm, gru, rnn, leaky_rnn"),
    ({"cell": "leaky_rnn"}, "alpha is missing; allowed with cell 'leaky_rnn': 0 to 1"),
    ({"num_layers": 0}, "num_layers is 0; allowed: 1 or more"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(HandgradError, match=message):
        model(**settings)


def test_a_wrong_call_is_refused() -> None:
    with pytest.raises(HandgradError, match=r"LSTM: x has shape \(2, 3\); allowed: \(N, T, 4\)"):
        model().forward(some(2, 3))
    with pytest.raises(HandgradError, match="lengths go from 1 to 4; allowed: 0 to 3"):
        model().forward(some(2, 3, D), [1, 4])
    with pytest.raises(HandgradError, match="state is a ndarray; allowed: a pair"):
        model().forward(some(2, 3, D), None, some(1, 2, H))
    tagger = model(vocabulary=7)
    with pytest.raises(HandgradError, match=r"tokens have shape \(6,\); allowed: \(N, T\)"):
        tagger.forward(some_tokens()[0])
    with pytest.raises(HandgradError, match="tokens go from 0 to 7; allowed: 0 to 6"):
        tagger.forward(np.array([[0, 7]]))
    with pytest.raises(HandgradError, match=r"an example has shape \(6, 4\); allowed: \(T,\)"):
        tagger.output_shape((6, D))
