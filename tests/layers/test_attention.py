"""Multi-head attention: its inputs and their gradients, its sizes, heads, decoding, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import MultiHeadAttention
from handgrad.layers.attention import merge_heads, split_heads
from handgrad.ops import attention
from tests.layers.gradients import check_destinations, check_gradients
from tests.test_numbers import Q
from tests.tolerances import assert_close

F64 = np.float64


def rng() -> np.random.Generator:
    return np.random.default_rng(71)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def layer(**settings: Any) -> MultiHeadAttention:
    return MultiHeadAttention(6, 3, rng=rng(), dtype=F64, **settings)


def test_heads_are_blocks_of_columns() -> None:
    """Transformer Layer notes, section 2: d_model = 8 and h = 2."""
    first, second = split_heads(Q[None], 2)[0]
    np.testing.assert_array_equal(first, [[1, 2, 3, 4], [2, 1, 0, 1], [0, 1, 1, 0]])
    np.testing.assert_array_equal(second, [[5, 6, 7, 8], [3, 3, 2, 2], [9, 8, 7, 6]])
    np.testing.assert_array_equal(merge_heads(split_heads(Q[None], 2))[0], Q)


def test_y_is_the_concatenation_of_the_heads_times_w_o() -> None:
    """Transformer Layer notes, section 5: MHA(X) = concat(head_1, …, head_h) W_O."""
    mha = layer(bias=False)
    x = some(1, 5, 6)
    weights = mha.parameters
    heads = []
    for i in range(3):
        rows = slice(2 * i, 2 * i + 2)
        q, k, v = (x @ weights[f"{name}_proj.weight"][rows].T for name in "qkv")
        head, _ = attention.forward(q[:, None], k[:, None], v[:, None])
        heads.append(head[:, 0])
    y, _ = mha.forward(x)
    assert_close(y, np.concatenate(heads, axis=-1) @ weights["o_proj.weight"].T, "float64")


CROSS = {"k_size": 4, "v_size": 5, "k_proj_size": 2, "v_proj_size": 3, "o_proj_size": 7}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mask": np.arange(20).reshape(5, 4) % 3 > 0},
        {"lengths": np.array([4, 0])},
        {"causal": True},
    ],
    ids=lambda settings: "-".join(settings) or "plain",
)
def test_gradients_of_three_inputs(settings: dict[str, Any], training: bool) -> None:
    mha = layer(dropout=0.3, post_dropout=0.2, **CROSS)
    inputs = some(2, 5, 6), some(2, 4, 4), some(2, 4, 5)
    check_gradients(mha, *inputs, training=training, **settings)
    check_destinations(layer(**CROSS), *inputs, training=False, **settings)


def test_gradients_of_a_query_and_a_memory() -> None:
    mha = layer(k_size=4, v_size=4, kv_heads=1)
    check_gradients(mha, some(2, 5, 6), some(2, 4, 4), training=False)


def test_gradients_without_projections() -> None:
    mha = MultiHeadAttention(
        3,
        2,
        rng=rng(),
        v_size=5,
        q_proj_size=0,
        k_proj_size=0,
        v_proj_size=0,
        o_proj_size=0,
        dtype=F64,
    )
    assert mha.parameters == {}
    y, cache = mha.forward(some(2, 4, 3), some(2, 6, 3), some(2, 6, 5))
    assert y.shape == (2, 4, 10)
    np.testing.assert_array_equal(y[..., :5], y[..., 5:])
    assert [gradient.shape for gradient in mha.backward(y, cache)[0]] == [
        (2, 4, 3), (2, 6, 3), (2, 6, 5),
    ]  # fmt: skip


def test_the_gradient_of_self_attention_is_the_sum_of_the_three_branches() -> None:
    mha = layer()
    x = some(2, 5, 6)
    y, cache = mha.forward(x)
    dx, gradients = mha.backward(some(*y.shape), cache)
    y_apart, cache_apart = mha.forward(x, x, x)
    np.testing.assert_array_equal(y_apart, y)
    branches, same = mha.backward(some(*y.shape), cache_apart)
    assert_close(sum(branches), dx, "float64")
    _, cache_memory = mha.forward(x, x)
    (dquery, dmemory), _ = mha.backward(some(*y.shape), cache_memory)
    assert_close(dquery + dmemory, dx, "float64")
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(same[name], gradient)


def test_lengths_and_beams_are_no_settings() -> None:
    """One layer takes sequences of any length; a beam of 3 is 3 rows of the batch."""
    mha = MultiHeadAttention(6, 2, rng=rng(), k_size=4, v_size=4, dtype=np.float64)
    before = mha.parameter_bytes
    for queries, keys in ((3, 5), (7, 2)):
        x = rng().standard_normal((2, 3, queries, 6))
        memory = rng().standard_normal((2, keys, 4))
        of_beams, of_sources = x.reshape(6, queries, 6), np.repeat(memory, 3, axis=0)
        y, _ = mha.forward(of_beams, of_sources)
        for hypothesis in range(3):
            alone, _ = mha.forward(x[:, hypothesis], memory)
            assert_close(y.reshape(x.shape)[:, hypothesis], alone, "float64", "y")
    assert mha.parameter_bytes == before


def test_the_bytes_of_cudnns_descriptor() -> None:
    """2 heads, q/k/v 512/256/128 to 64/64/16, o 8, biases, float32, as docs/layers.md has them."""
    mha = MultiHeadAttention(
        512,
        2,
        rng=rng(),
        k_size=256,
        v_size=128,
        q_proj_size=64,
        k_proj_size=64,
        v_proj_size=16,
        o_proj_size=8,
    )
    assert mha.parameter_bytes == 411_808
    y, _ = mha.forward(
        np.zeros((1, 3, 512), np.float32),
        np.zeros((1, 5, 256), np.float32),
        np.zeros((1, 5, 128), np.float32),
    )
    assert y.shape == (1, 3, 8)


def test_kv_heads_serve_heads_that_stand_together() -> None:
    grouped = MultiHeadAttention(8, 4, rng=rng(), kv_heads=2, dtype=F64)
    full = MultiHeadAttention(8, 4, rng=rng(), dtype=F64)
    repeated = {
        name: np.repeat(array.reshape(2, 2, -1), 2, axis=0).reshape(full.parameters[name].shape)
        if name[0] in "kv"
        else array
        for name, array in grouped.parameters.items()
    }
    full.update_parameters(repeated)
    x = some(2, 5, 8)
    assert_close(grouped.forward(x)[0], full.forward(x)[0], "float64")


@pytest.mark.parametrize("rotary", [False, True])
def test_decoding_gives_what_forward_gives(rotary: bool) -> None:
    mha = layer(rotary=rotary)
    x = some(2, 5, 6)
    whole, _ = mha.forward(x, causal=True)
    past = mha.keys_and_values(x[:, :2])
    found = [mha.attend(x[:, :2], past, causal=True)]
    for t in range(2, 5):
        step = x[:, t : t + 1]
        past = past.followed_by(mha.keys_and_values(step, offset=t))
        found.append(mha.attend(step, past, causal=True, offset=t))
    assert_close(np.concatenate(found, axis=1), whole, "float64")


def test_dropout_is_for_training_only_and_repeats() -> None:
    x = some(2, 5, 6)
    quiet, _ = layer().forward(x)
    for settings in ({"dropout": 0.5}, {"post_dropout": 0.5}):
        mha = layer(**settings)
        assert list(mha.generators) == ["rng"]
        np.testing.assert_array_equal(mha.forward(x)[0], quiet)
        state = mha.generators["rng"].bit_generator.state
        first, _ = mha.forward(x, training=True)
        assert np.any(first != quiet)
        mha.generators["rng"].bit_generator.state = state
        np.testing.assert_array_equal(mha.forward(x, training=True)[0], first)
    assert layer().generators == {}


def test_a_sequence_of_length_0_gets_the_bias_and_gives_no_gradient() -> None:
    mha = layer(bias=False)
    x, memory = some(2, 5, 6), some(2, 4, 6)
    y, cache = mha.forward(x, memory, lengths=np.array([0, 4]))
    np.testing.assert_array_equal(y[0], 0.0)
    (dx, dmemory), _ = mha.backward(some(*y.shape), cache)
    np.testing.assert_array_equal(dx[0], 0.0)
    np.testing.assert_array_equal(dmemory[0], 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": 4}, "heads is 4, which does not divide 6; allowed: a number that does"),
        ({"heads": 0}, "heads is 0; allowed: 1 or more"),
        ({"kv_heads": 2}, "kv_heads is 2; allowed: a number that divides heads = 3"),
        ({"q_proj_size": 4, "k_proj_size": 5}, "a head's key has size 5; allowed: 4"),
        ({"v_proj_size": -1}, "v_proj_size is -1; allowed: 0 or more"),
        ({"dropout": 1.5}, "dropout is 1.5; allowed: 0 to 1"),
        ({"post_dropout": -1}, "post_dropout is -1; allowed: 0 to 1"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=f"MultiHeadAttention: {message}"):
        MultiHeadAttention(**{"q_size": 6, "heads": 3, "rng": rng(), **settings})


def test_inputs_that_do_not_fit_are_named() -> None:
    mha = layer(**CROSS)
    with pytest.raises(ShapeError, match=r"key has shape \(2, 4, 6\); allowed: \(N, T, 4\)"):
        mha.forward(some(2, 5, 6), some(2, 4, 6))
    with pytest.raises(ShapeError, match=r"query has shape \(5, 6\); allowed: \(N, T, 6\)"):
        mha.forward(some(5, 6))
    with pytest.raises(ShapeError, match="attention: mask has shape"):
        mha.forward(some(2, 5, 6), some(2, 4, 4), some(2, 4, 5), mask=np.ones((4, 5), bool))
    with pytest.raises(ArgumentError, match="lengths go from 4 to 5; allowed: 0 to 4"):
        mha.forward(some(2, 5, 6), some(2, 4, 4), some(2, 4, 5), lengths=np.array([4, 5]))
    with pytest.raises(ArgumentError, match="value is given without key"):
        mha.forward(some(2, 5, 6), value=some(2, 4, 5))
    with pytest.raises(ShapeError, match=r"an example has shape \(5, 4\); allowed: \(T, 6\)"):
        mha.output_shape((5, 4))
