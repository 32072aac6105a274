"""GPT: PyTorch's gradients, tied heads, decoding with a cache and beyond the context."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, ShapeError
from handgrad.models.gpt import GPT
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close
from tests.torch.comparing import own_arrays, own_gradients

F64 = np.float64
SMALL: dict[str, Any] = {"context": 6, "width": 8, "heads": 2, "blocks": 2, "dtype": F64}
SETTINGS: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied": {"tied": False, "approximate": "tanh"},
    "without-biases": {"bias": False, "hidden": 5},
    "rotary": {"positions": "rotary", "kv_heads": 1},
    "sinusoidal": {"positions": "sinusoidal", "tied": False},
}
ALL = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
HEADS = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])


def model(**settings: Any) -> GPT:
    """A small model with weights large enough for every gradient to count."""
    rng = np.random.default_rng(5)
    gpt = GPT(7, rng=rng, **{**SMALL, **settings})
    for array in gpt.parameters.values():
        array[...] = rng.normal(0.0, 0.5, array.shape)
    return gpt


def text(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 7, shape)


@ALL
@pytest.mark.parametrize("training", [False, True])
def test_gradients_match_differences(settings: dict[str, Any], training: bool) -> None:
    check_gradients(model(dropout=0.2, **settings), text(3, 5), training=training)


@ALL
def test_gradients_go_where_they_are_sent(settings: dict[str, Any]) -> None:
    check_destinations(model(**settings), text(3, 5), training=True)


@pytest.mark.slow
@HEADS
def test_the_checker_finds_nothing(tied: bool) -> None:
    report = hg.check(model(tied=tied), text(2, 4))
    assert report.ok, str(report)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@HEADS
def test_pytorch_gives_the_same(tied: bool, approximate: str, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    nn, functional = torch.nn, torch.nn.functional
    like: dict[str, Any] = {"dtype": torch.float64}

    class Replica(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(7, 8, **like)
            self.positions = nn.Embedding(6, 8, **like)
            block = nn.TransformerEncoderLayer(
                8,
                2,
                32,
                dropout=0.0,
                activation=nn.GELU(approximate),
                norm_first=True,
                batch_first=True,
                bias=bias,
                **like,
            )
            norm = nn.LayerNorm(8, bias=bias, **like)
            self.blocks = nn.TransformerEncoder(block, 2, norm, enable_nested_tensor=False)
            if not tied:
                self.head = nn.Linear(8, 7, bias=False, **like)

        def forward(self, tokens: Any) -> Any:
            steps = tokens.shape[1]
            causal = nn.Transformer.generate_square_subsequent_mask(steps, **like)
            x = self.tokens(tokens) + self.positions(torch.arange(steps))
            x = self.blocks(x, mask=causal, is_causal=True)
            return functional.linear(x, (self.tokens if tied else self.head).weight)

    replica = Replica()
    with torch.no_grad():
        for parameter in replica.parameters():
            parameter.normal_(0.0, 0.5, generator=torch.Generator().manual_seed(3))
    ours = model(tied=tied, approximate=approximate, bias=bias)
    ours.update_parameters(own_arrays(replica))
    tokens = text(3, 5)
    logits, cache = ours.forward(tokens)
    expected = replica(torch.tensor(tokens))
    assert_close(logits, expected.detach().numpy(), "torch float64", "logits")

    dlogits = np.random.default_rng(9).standard_normal(logits.shape)
    _, gradients = ours.backward(dlogits, cache)
    expected.backward(torch.tensor(dlogits))
    theirs = own_gradients(replica)
    assert set(theirs) == set(gradients)
    for name, gradient in gradients.items():
        assert_close(gradient, theirs[name], "torch float64", name)


def test_the_gradient_of_a_tied_table_is_the_sum_of_both_uses() -> None:
    tied, untied = model(), model(tied=False)
    parameters = tied.parameters
    untied.update_parameters({**parameters, "head.weight": parameters["tokens.weight"]})
    tokens = np.array([[3, 3, 0], [3, 6, 3]])
    logits, cache = tied.forward(tokens)
    apart, cache_apart = untied.forward(tokens)
    np.testing.assert_array_equal(logits, apart)
    dlogits = np.random.default_rng(2).standard_normal(logits.shape)
    _, gradients = tied.backward(dlogits, cache)
    _, of_each = untied.backward(dlogits, cache_apart)
    both = of_each["tokens.weight"] + of_each["head.weight"]
    assert_close(gradients["tokens.weight"], both, "float64")


def test_reference_and_kernels_agree() -> None:
    gpt, tokens = model(), text(3, 5)
    found = []
    for engine in ("auto", "reference"):
        with hg.engine(engine):
            logits, cache = gpt.forward(tokens)
            dlogits = np.random.default_rng(1).standard_normal(logits.shape)
            found.append({"logits": logits, **gpt.backward(dlogits, cache)[1]})
    for name, array in found[0].items():
        assert_close(array, found[1][name], "float64", name)


@ALL
def test_nothing_depends_on_later_tokens(settings: dict[str, Any]) -> None:
    gpt, tokens = model(**settings), text(3, 5)
    before, _ = gpt.forward(tokens)
    tokens[:, 3:] = (tokens[:, 3:] + 1) % 7
    after, _ = gpt.forward(tokens)
    np.testing.assert_array_equal(after[:, :3], before[:, :3])
    assert np.all(np.any(after[:, 3:] != before[:, 3:], axis=-1))


@ALL
def test_decoding_gives_what_forward_gives(settings: dict[str, Any]) -> None:
    gpt, tokens = model(**settings), text(3, 6)
    whole, _ = gpt.forward(tokens)
    logits, state = gpt.start(tokens[:, :2])
    found = [logits]
    for t in range(2, 6):
        logits, state = gpt.step(tokens[:, t], state)
        found.append(logits)
    assert_close(np.stack(found, axis=1), whole[:, 1:], "float64")


@ALL
def test_beyond_the_context_the_last_tokens_count(settings: dict[str, Any]) -> None:
    gpt, tokens = model(**settings), text(2, 9)
    logits, state = gpt.start(tokens[:, :5])
    for t in range(5, 9):
        logits, state = gpt.step(tokens[:, t], state)
        assert state.tokens.shape[1] == min(t + 1, 6)
    expected, _ = gpt.forward(tokens[:, 3:])
    assert_close(logits, expected[:, -1], "float64")
    assert_close(gpt.start(tokens)[0], expected[:, -1], "float64")


def test_rows_of_a_state_can_be_chosen() -> None:
    gpt, tokens = model(), text(3, 4)
    _, state = gpt.start(tokens)
    rows = np.array([2, 0, 2])
    logits, _ = gpt.step(np.array([1, 2, 3]), gpt.choose(state, rows))
    expected, _ = gpt.forward(np.column_stack([tokens[rows], [1, 2, 3]]))
    assert_close(logits, expected[:, -1], "float64")


def test_the_most_probable_tokens_are_those_of_forward() -> None:
    gpt, expected = model(), text(2, 3)
    written = gpt.generate(expected, length=7, rng=np.random.default_rng(0), temperature=0)
    for _ in range(7):
        logits, _ = gpt.forward(expected[:, -6:])
        expected = np.column_stack([expected, np.argmax(logits[:, -1], axis=1)])
    np.testing.assert_array_equal(written, expected)


def test_generating_draws_from_the_generator_alone() -> None:
    gpt = model()

    def draw(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return gpt.generate(text(2, 3), length=20, rng=rng, temperature=0.8, top_k=5, top_p=0.9)

    np.testing.assert_array_equal(draw(1), draw(1))
    assert np.any(draw(1) != draw(2))


def test_weights_start_as_those_of_gpt2() -> None:
    gpt = GPT(500, context=100, width=64, heads=2, blocks=3, rng=np.random.default_rng(0))
    for name, array in gpt.parameters.items():
        if name.endswith("weight"):
            small = name.endswith(("o_proj.weight", "linear2.weight"))
            std = 0.02 / math.sqrt(6) if small else 0.02
            assert abs(array.std() / std - 1) < 0.05, name
            assert abs(array.mean()) < 0.05 * std, name
        else:
            np.testing.assert_array_equal(array, 1.0 if name.endswith("gamma") else 0.0)
    logits, _ = gpt.forward(np.arange(100)[None])
    loss, _ = hg.losses.CrossEntropy(class_axis=-1).forward(logits, np.arange(100, 200)[None])
    assert abs(float(loss) - math.log(500)) < 0.1


def test_the_size_of_gpt2() -> None:
    """The count of a small one by hand: 12 d² + 13 d a block, the tables, and the last norm."""
    gpt = GPT(50, context=20, width=16, heads=4, blocks=3, rng=np.random.default_rng(0))
    count = sum(array.size for array in gpt.parameters.values())
    assert count == 3 * (12 * 16**2 + 13 * 16) + (50 + 20) * 16 + 2 * 16
    assert not any(name.endswith(("bias", "beta")) for name in model(bias=False).parameters)


def test_attention_maps_are_in_the_cache() -> None:
    gpt, tokens = model(), text(3, 5)
    _, cache = gpt.forward(tokens)
    maps = dict(gpt.attention_maps(cache))
    assert list(maps) == ["blocks.0.attention", "blocks.1.attention"]
    for weights in maps.values():
        assert weights.shape == (3, 2, 5, 5)
        assert_close(weights.sum(axis=-1), np.ones((3, 2, 5)), "float64")
        np.testing.assert_array_equal(np.triu(weights, 1), 0.0)


@ALL
def test_shapes_and_the_table_of_the_report(settings: dict[str, Any]) -> None:
    gpt = model(**settings)
    rows = gpt.rows((5,), "gpt")
    assert gpt.output_shape((5,)) == (5, 7) == rows[-1].output_shape
    assert sum(row.parameters for row in rows) == sum(a.size for a in gpt.parameters.values())
    assert gpt.flops((5,)) == sum(row.flops for row in rows)
    assert (rows[0].name, rows[-1].name) == ("gpt.tokens", "gpt.head")
    assert rows[-1].flops == 2 * 5 * 8 * 7


def test_an_empty_batch() -> None:
    gpt = model()
    logits, cache = gpt.forward(np.zeros((0, 4), dtype=np.int64))
    assert logits.shape == (0, 4, 7)
    _, gradients = gpt.backward(logits, cache)
    for gradient in gradients.values():
        np.testing.assert_array_equal(gradient, 0.0)


def test_what_does_not_fit_is_refused() -> None:
    gpt = model()
    with pytest.raises(ShapeError, match=r"GPT: tokens have shape \(2, 7\); allowed: \(N, T\) wit"):
        gpt.forward(text(2, 7))
    with pytest.raises(ShapeError, match=r"tokens have shape \(5,\); allowed: \(N, T\)"):
        gpt.forward(text(5))
    with pytest.raises(ShapeError, match=r"tokens have shape \(2, 0\); allowed: \(B, T\) with T"):
        gpt.start(text(2, 0))
    with pytest.raises(ArgumentError, match="tokens go from 0 to 7; allowed: 0 to 6"):
        gpt.forward(np.array([[0, 7]]))
    with pytest.raises(ArgumentError, match="tokens go from -1 to 3"):
        gpt.start(np.array([[-1, 3]]))
    with pytest.raises(ArgumentError, match="tokens is an array of float64 and shape"):
        gpt.forward(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="GPT: context is 0; allowed: 1 or more"):
        model(context=0)
    with pytest.raises(ArgumentError, match="GPT: positions is 'none'; allowed: learned, rotary, "):
        model(positions="none")
    with pytest.raises(ArgumentError, match="heads is 3, which does not divide 8"):
        model(heads=3)
    with pytest.raises(ShapeError, match=r"GPT: tokens have shape \(9,\); allowed: an example"):
        gpt.output_shape((9,))
