"""Sequential: names, and no work below the first layer with parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.layers import Activation, Dense, Flatten, Sequential


class _Counted(Activation):
    """Counts how often its backward runs."""

    calls = 0

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return super().backward(*args, **kwargs)


def test_children_are_named_by_position_or_keyword() -> None:
    rng = np.random.default_rng(0)
    model = Sequential(Flatten(), head=Dense(4, 2, rng=rng))
    assert list(model.layers) == ["0", "head"]
    assert list(model.parameters) == ["head.weight", "head.bias"]


def test_nothing_is_computed_below_the_first_parameters_unless_dx_is_wanted() -> None:
    rng = np.random.default_rng(0)
    first, last = _Counted("tanh"), _Counted("tanh")
    model = Sequential(first, Dense(4, 2, rng=rng), last)
    y, cache = model.forward(np.ones((3, 4), np.float32))
    dx, _ = model.backward(y, cache, input_gradient=False)
    assert dx is None
    assert (first.calls, last.calls) == (0, 1)
    dx, _ = model.backward(y, cache)
    assert dx is not None
    assert (first.calls, last.calls) == (1, 2)
