"""Accumulation: unequal parts of a batch give the gradient of the whole batch."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.layers import Dense, FlatArrays, Sequential
from handgrad.losses import CrossEntropy
from handgrad.optimizers import Accumulation
from tests.tolerances import assert_close


def test_unequal_parts_weigh_by_their_examples() -> None:
    rng = np.random.default_rng(0)
    model = Sequential(
        Dense(6, 5, rng=rng, activation="tanh", dtype=np.float64),
        Dense(5, 3, rng=rng, dtype=np.float64),
    )
    x = rng.standard_normal((11, 6))
    target = rng.integers(0, 3, 11)
    loss = CrossEntropy()

    def gradients(part: slice) -> dict[str, np.ndarray]:
        y, cache = model.forward(x[part], training=True)
        _, loss_cache = loss.forward(y, target[part])
        return dict(model.backward(loss.backward(loss_cache), cache)[1])

    whole = gradients(slice(None))
    accumulation = Accumulation(model.parameters)
    for part in (slice(0, 1), slice(1, 7), slice(7, 11)):
        accumulation.add(gradients(part), len(x[part]))
    found = accumulation.take()
    for name, expected in whole.items():
        assert_close(found[name], expected, "float64", name)


def test_whole_numbers_add_up_exactly() -> None:
    parameters = {"weight": np.zeros(2, np.float32)}
    accumulation = Accumulation(parameters)
    accumulation.add(FlatArrays.of({"weight": np.array([3.0, -6.0], np.float32)}), 1)
    accumulation.add({"weight": np.array([9.0, 0.0], np.float32)}, 2)
    np.testing.assert_array_equal(accumulation.take()["weight"], [7.0, -2.0])
    np.testing.assert_array_equal(accumulation.take()["weight"], [0.0, 0.0])


def test_errors_say_what_is_allowed() -> None:
    accumulation = Accumulation({"weight": np.zeros(2, np.float32)})
    with pytest.raises(ArgumentError, match="examples is -1; allowed: 0 or more"):
        accumulation.add({"weight": np.zeros(2)}, -1)
    with pytest.raises(ArgumentError, match="'weight' is missing"):
        accumulation.add({}, 1)
