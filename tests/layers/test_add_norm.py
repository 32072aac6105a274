"""Add & Norm: both forms written out, and what goes through to the inner layer."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.layers import (
    LSTM,
    RNN,
    AddNorm,
    Dense,
    FeedForward,
    Layer,
    MultiHeadAttention,
    Sequential,
)
from handgrad.ops import layer_norm
from tests.layers.gradients import check_destinations, check_gradients


def _layer(norm: str) -> AddNorm:
    return AddNorm(
        Dense(4, 4, rng=np.random.default_rng(0), dtype=np.float64), 4, norm=norm, dtype=np.float64
    )


def test_the_norm_before_and_after() -> None:
    x = np.random.default_rng(1).standard_normal((3, 4))
    pre, post = _layer("pre"), _layer("post")
    gamma, beta = np.ones(4), np.zeros(4)
    f_of_norm, _ = pre.inner.forward(layer_norm.forward(x, gamma, beta)[0])
    np.testing.assert_array_equal(pre.forward(x)[0], x + f_of_norm)
    f, _ = post.inner.forward(x)
    np.testing.assert_array_equal(post.forward(x)[0], layer_norm.forward(x + f, gamma, beta)[0])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", ["feed-forward", "attention"])
def test_the_sum_is_written_where_the_inner_layer_ends(kind: str, training: bool) -> None:
    def make() -> Layer:
        rng = np.random.default_rng(5)
        if kind == "attention":
            return MultiHeadAttention(6, 2, rng=rng, post_dropout=0.3)
        return FeedForward(6, 11, rng=rng, activation="gelu", dropout=0.3)

    x = np.random.default_rng(6).standard_normal((3, 5, 6)).astype(np.float32)
    layer = AddNorm(make(), 6)
    z, _ = layer.norm.forward(x)
    f, _ = make().forward(z, training=training)  # draws the same numbers
    np.testing.assert_array_equal(layer.forward(x, training=training)[0], x + f)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_any_layer_may_stand_inside(norm: str) -> None:
    rng = np.random.default_rng(7)
    inner = Sequential(LSTM(4, 5, rng=rng, dtype=np.float64), RNN(5, 4, rng=rng, dtype=np.float64))
    layer = AddNorm(inner, 4, norm=norm, dtype=np.float64)
    check_gradients(layer, rng.standard_normal((2, 3, 4)), training=False)
    check_gradients(layer, rng.standard_normal((2, 3, 4)), training=True)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_memory_goes_through_and_its_gradient_comes_back(norm: str) -> None:
    rng = np.random.default_rng(2)
    inner = MultiHeadAttention(4, 2, rng=rng, k_size=3, v_size=3, dtype=np.float64)
    layer = AddNorm(inner, 4, norm=norm, dtype=np.float64)
    inputs = rng.standard_normal((2, 5, 4)), rng.standard_normal((2, 3, 3))
    check_gradients(layer, *inputs, training=False, lengths=np.array([3, 1]))
    check_destinations(layer, *inputs, training=False)


def test_another_order_is_refused() -> None:
    with pytest.raises(ArgumentError, match="AddNorm: norm is 'after'; allowed: pre, post"):
        _layer("after")


def test_the_table_has_a_row_for_the_sum() -> None:
    rows = _layer("pre").rows((4,), "1")
    assert [row.name for row in rows] == ["1.norm", "1.inner", "1"]
