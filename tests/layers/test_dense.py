"""Dense: first values, options and errors."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import initializers
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import Dense
from tests.tolerances import assert_close


def test_relu_starts_with_he_and_everything_else_with_xavier() -> None:
    he = Dense(30, 20, rng=np.random.default_rng(1), activation="relu")
    xavier = Dense(30, 20, rng=np.random.default_rng(1), activation="tanh")
    rng = np.random.default_rng
    np.testing.assert_array_equal(he.weight, initializers.he_uniform((20, 30), rng(1)))
    np.testing.assert_array_equal(xavier.weight, initializers.xavier_uniform((20, 30), rng(1)))
    np.testing.assert_array_equal(he.bias, np.zeros(20))


def test_the_activation_is_the_op_s() -> None:
    dense = Dense(3, 2, rng=np.random.default_rng(1), activation="leaky_relu", negative_slope=0.5)
    x = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
    a = x @ dense.weight.T
    assert_close(dense.forward(x)[0], np.where(a > 0, a, 0.5 * a), "float32")


def test_flops_count_a_multiply_add_as_two() -> None:
    dense = Dense(64, 32, rng=np.random.default_rng(1))
    assert dense.flops((64,)) == 2 * 64 * 32 + 32


def test_errors_say_what_is_allowed() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(
        ArgumentError, match="Dense: activation is 'swish'; allowed: identity, relu"
    ):
        Dense(3, 2, rng=rng, activation="swish")
    with pytest.raises(ShapeError, match=r"Dense: .* \(4,\); allowed: \(\.\.\., 3\)"):
        Dense(3, 2, rng=rng).output_shape((4,))
