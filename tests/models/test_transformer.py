"""Transformer: PyTorch's gradients, shared tables, padding without influence, decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.positions import table
from handgrad.models.transformer import Transformer
from tests.layers.gradients import check_destinations, check_gradients
from tests.models.comparing import assert_greedy_is_forward
from tests.tolerances import assert_close
from tests.torch.comparing import own_arrays, own_gradients

F64 = np.float64
SMALL: dict[str, Any] = {
    "d_model": 8,
    "heads": 2,
    "hidden": 12,
    "encoder_blocks": 2,
    "decoder_blocks": 2,
    "activation": "tanh",
    "dropout": 0.0,
    "longest": 6,
    "dtype": F64,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {"norm": "pre", "positions": "learned"},
    "tied": {"tied": True, "positions": "learned"},
    "shared": {"shared": True, "norm": "pre"},
    "one-table": {"shared": True, "tied": True},
}
ALL = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
SOURCE_LENGTHS, TARGET_LENGTHS = np.array([4, 2, 3]), np.array([3, 5, 1])


def model(**settings: Any) -> Transformer:
    """A small model with weights large enough for every gradient to count."""
    rng = np.random.default_rng(6)
    settings = {**SMALL, **settings}
    transformer = Transformer(7 if settings.get("shared") else 9, 7, rng=rng, **settings)
    for array in transformer.parameters.values():
        array[...] = rng.normal(0.0, 0.5, array.shape)
    return transformer


def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A ragged batch, padded with 0."""
    rng = np.random.default_rng(4)
    sources, inputs = rng.integers(1, 7, (3, 4)), rng.integers(1, 7, (3, 5))
    sources[np.arange(4) >= SOURCE_LENGTHS[:, None]] = 0
    inputs[np.arange(5) >= TARGET_LENGTHS[:, None]] = 0
    return sources, SOURCE_LENGTHS.copy(), inputs, TARGET_LENGTHS.copy()


def cotangent(shape: tuple[int, ...], lengths: np.ndarray) -> np.ndarray:
    """The gradient of a loss that ignores the padding."""
    dlogits = np.random.default_rng(8).standard_normal(shape)
    dlogits[np.arange(shape[1]) >= lengths[:, None]] = 0.0
    return dlogits


@ALL
@pytest.mark.parametrize("training", [False, True])
def test_gradients_match_differences(settings: dict[str, Any], training: bool) -> None:
    check_gradients(model(**{**settings, "dropout": 0.2}), *pairs(), training=training)


@ALL
def test_gradients_go_where_they_are_sent(settings: dict[str, Any]) -> None:
    check_destinations(model(**settings), *pairs(), training=True)


@pytest.mark.slow
def test_the_checker_finds_nothing() -> None:
    report = hg.check(model(encoder_blocks=1, decoder_blocks=1, tied=True), *pairs())
    assert report.ok, str(report)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_pytorch_gives_the_same(shared: bool, tied: bool, norm: str) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    like: dict[str, Any] = {"dtype": torch.float64}
    sizes: dict[str, Any] = {
        "d_model": 8,
        "nhead": 2,
        "dim_feedforward": 12,
        "dropout": 0.0,
        "activation": "gelu",
        "norm_first": norm == "pre",
        "batch_first": True,
        **like,
    }

    class Replica(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            if not shared:
                self.source = nn.Embedding(9, 8, **like)
            self.target = nn.Embedding(7, 8, **like)

            def last() -> Any:
                return nn.LayerNorm(8, **like) if norm == "pre" else None

            self.encoder = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(**sizes), 2, last(), enable_nested_tensor=False
            )
            self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**sizes), 2, last())
            if not tied:
                self.head = nn.Linear(8, 7, **like)

        def forward(self, sources: Any, s_padding: Any, inputs: Any, t_padding: Any) -> Any:
            def embed(rows: Any, tokens: Any) -> Any:
                return 8**0.5 * rows(tokens) + torch.tensor(table(tokens.shape[1], 8))

            source = self.target if shared else self.source
            memory = self.encoder(embed(source, sources), src_key_padding_mask=s_padding)
            later = torch.ones(inputs.shape[1], inputs.shape[1], dtype=torch.bool).triu(1)
            z = self.decoder(
                embed(self.target, inputs),
                memory,
                tgt_mask=later,
                tgt_key_padding_mask=t_padding,
                memory_key_padding_mask=s_padding,
            )
            return nn.functional.linear(z, self.target.weight) if tied else self.head(z)

    replica = Replica()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in replica.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    ours = model(norm=norm, tied=tied, shared=shared, activation="gelu")
    ours.update_parameters(own_arrays(replica))
    sources, source_lengths, inputs, target_lengths = pairs()
    logits, cache = ours.forward(sources, source_lengths, inputs, target_lengths)
    expected = replica(
        torch.tensor(sources),
        torch.tensor(np.arange(4) >= source_lengths[:, None]),
        torch.tensor(inputs),
        torch.tensor(np.arange(5) >= target_lengths[:, None]),
    )
    valid = np.arange(5) < target_lengths[:, None]
    assert_close(logits[valid], expected.detach().numpy()[valid], "torch float64", "logits")

    dlogits = cotangent(logits.shape, target_lengths)
    _, gradients = ours.backward(dlogits, cache)
    expected.backward(torch.tensor(dlogits))
    theirs = own_gradients(replica)
    assert set(theirs) == set(gradients)
    for name, gradient in gradients.items():
        assert_close(gradient, theirs[name], "torch float64", name)


@ALL
def test_ragged_batches_give_what_every_pair_gives_alone(settings: dict[str, Any]) -> None:
    transformer = model(**settings)
    sources, source_lengths, inputs, target_lengths = pairs()
    logits, cache = transformer.forward(*pairs())
    dlogits = cotangent(logits.shape, target_lengths)
    _, gradients = transformer.backward(dlogits, cache)
    totals = {name: np.zeros_like(array) for name, array in gradients.items()}
    for n, (s, t) in enumerate(zip(source_lengths, target_lengths, strict=True)):
        own = slice(n, n + 1)
        alone, alone_cache = transformer.forward(sources[own, :s], None, inputs[own, :t])
        assert_close(logits[own, :t], alone, "float64")
        _, parts = transformer.backward(dlogits[own, :t], alone_cache)
        totals = {name: total + parts[name] for name, total in totals.items()}
    for name, gradient in gradients.items():
        assert_close(gradient, totals[name], "float64", name)


def test_what_pads_a_source_has_no_influence() -> None:
    transformer = model()
    sources, source_lengths, inputs, target_lengths = pairs()
    logits, cache = transformer.forward(*pairs())
    _, gradients = transformer.backward(cotangent(logits.shape, target_lengths), cache)
    np.testing.assert_array_equal(gradients["source.weight"][0], 0.0)
    sources[np.arange(4) >= source_lengths[:, None]] = 5
    again, _ = transformer.forward(sources, source_lengths, inputs, target_lengths)
    np.testing.assert_array_equal(again, logits)


def test_nothing_depends_on_later_tokens() -> None:
    transformer = model()
    sources, source_lengths, inputs, _ = pairs()
    before, _ = transformer.forward(sources, source_lengths, inputs)
    inputs[:, 3:] = (inputs[:, 3:] + 1) % 7
    after, _ = transformer.forward(sources, source_lengths, inputs)
    np.testing.assert_array_equal(after[:, :3], before[:, :3])
    assert np.all(np.any(after[:, 3:] != before[:, 3:], axis=-1))


def test_an_empty_source_is_nothing_to_look_at() -> None:
    transformer = model()
    sources, _, inputs, target_lengths = pairs()
    nothing = np.array([0, 2, 3])
    logits, cache = transformer.forward(sources, nothing, inputs, target_lengths)
    assert np.isfinite(logits).all()
    weights = dict(transformer.attention_maps(cache))["decoder.0.cross_attention"]
    np.testing.assert_array_equal(weights[0], 0.0)


@ALL
def test_decoding_gives_what_forward_gives(settings: dict[str, Any]) -> None:
    transformer = model(**settings)
    sources, source_lengths, inputs, _ = pairs()
    whole, _ = transformer.forward(sources, source_lengths, inputs)
    state = transformer.start(sources, source_lengths)
    found = []
    for t in range(5):
        logits, state = transformer.step(inputs[:, t], state)
        found.append(logits)
    assert_close(np.stack(found, axis=1), whole, "float64")


def test_rows_of_a_state_can_be_chosen() -> None:
    transformer = model()
    sources, source_lengths, inputs, _ = pairs()
    first, rows = np.array([2, 0]), np.array([1, 1, 0])
    state = transformer.choose(transformer.start(sources, source_lengths), first)
    _, state = transformer.step(inputs[first, 0], state)
    logits, _ = transformer.step(np.array([4, 5, 6]), transformer.choose(state, rows))
    chosen = first[rows]
    expected, _ = transformer.forward(
        sources[chosen], source_lengths[chosen], np.column_stack([inputs[chosen, 0], [4, 5, 6]])
    )
    assert_close(logits, expected[:, -1], "float64")


def test_the_most_probable_tokens_are_those_of_forward() -> None:
    sources, source_lengths, _, _ = pairs()
    assert_greedy_is_forward(model(), sources, source_lengths)


def test_tables_are_as_large_as_the_sinusoids() -> None:
    transformer = Transformer(300, 200, rng=np.random.default_rng(0), d_model=64, hidden=8)
    for name in ("source", "target"):
        weight = transformer.parameters[f"{name}.weight"]
        assert abs(8.0 * weight.std() - 1) < 0.05


def test_attention_maps_are_in_the_cache() -> None:
    transformer = model(decoder_blocks=1)
    _, cache = transformer.forward(*pairs())
    maps = dict(transformer.attention_maps(cache))
    assert {name: weights.shape for name, weights in maps.items()} == {
        "encoder.0.attention": (3, 2, 4, 4),
        "encoder.1.attention": (3, 2, 4, 4),
        "decoder.0.attention": (3, 2, 5, 5),
        "decoder.0.cross_attention": (3, 2, 5, 4),
    }
    for weights in maps.values():
        assert_close(weights.sum(axis=-1), np.ones(weights.shape[:3]), "float64")


@ALL
def test_shapes_and_the_table_of_the_report(settings: dict[str, Any]) -> None:
    transformer = model(**settings)
    shape = ((4,), (5,))
    rows = transformer.rows(shape, "model")
    sizes = [array.size for array in transformer.parameters.values()]
    assert transformer.output_shape(shape) == (5, 7) == rows[-1].output_shape
    assert sum(row.parameters for row in rows) == sum(sizes)
    assert transformer.flops(shape) == sum(row.flops for row in rows)
    crossing = next(row for row in rows if row.name.endswith("cross_attention.inner"))
    projections = 2 * (5 + 4) * 8 * (2 * 8 + 1)  # queries and outputs of 5 steps, the others of 4
    assert crossing.flops == projections + 2 * 5 * 4 * (2 * (4 + 4) + 5)


def test_one_table_has_one_name() -> None:
    def names(**settings: Any) -> list[str]:
        parts = (name.split(".")[0] for name in model(**settings).parameters)
        return list(dict.fromkeys(parts))

    assert names() == ["source", "target", "encoder", "decoder", "head"]
    assert names(tied=True, shared=True) == ["target", "encoder", "decoder"]
    assert "source_positions.weight" in model(positions="learned").parameters


def test_what_does_not_fit_is_refused() -> None:
    transformer = model()
    sources, source_lengths, inputs, target_lengths = pairs()
    with pytest.raises(ShapeError, match=r"sources have shape \(4,\); allowed: \(N, steps\) with"):
        transformer.forward(sources[0], None, inputs)
    with pytest.raises(ShapeError, match=r"inputs have shape \(3, 0\); allowed: \(N, steps\)"):
        transformer.forward(sources, None, inputs[:, :0])
    with pytest.raises(ShapeError, match=r"inputs have shape \(2, 5\); allowed: \(3, T\), as many"):
        transformer.forward(sources, None, inputs[:2])
    with pytest.raises(ArgumentError, match="Transformer, source: lengths go from 2 to 5; allow"):
        transformer.start(sources, source_lengths + (source_lengths == 4))
    with pytest.raises(ShapeError, match=r"Transformer, target: lengths has shape \(2,\); allowed"):
        transformer.forward(sources, source_lengths, inputs, target_lengths[:2])
    with pytest.raises(ArgumentError, match="tokens go from 3 to 9; allowed: 0 to 8"):
        transformer.forward(sources + 3, None, inputs)
    with pytest.raises(ArgumentError, match="source_vocabulary is 9; allowed with shared=True: 7"):
        Transformer(9, 7, shared=True, rng=np.random.default_rng(0), **SMALL)
    with pytest.raises(ArgumentError, match="Transformer: target_vocabulary is 0; allowed: 1 or m"):
        Transformer(9, 0, rng=np.random.default_rng(0), **SMALL)
    with pytest.raises(ArgumentError, match="positions is 'rotary'; allowed: sinusoidal, learned"):
        model(positions="rotary")
    with pytest.raises(ArgumentError, match="norm is 'none'; allowed: pre, post"):
        model(norm="none")
    with pytest.raises(ShapeError, match=r"an example has shape \(4,\); allowed: \(\(S,\), \(T,"):
        transformer.output_shape((4,))
    learned = model(positions="learned")
    with pytest.raises(
        ShapeError, match="x has 7 steps from position 0 on; allowed: positions 0 to 5"
    ):
        learned.forward(np.ones((1, 7), dtype=np.int64), None, inputs[:1])
