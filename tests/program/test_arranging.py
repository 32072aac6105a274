"""Axes that are turned are known in every way that this is written."""

from __future__ import annotations

import numpy as np

from handgrad.program import recorded
from handgrad.program.arranging import is_transpose, turned

RNG = np.random.default_rng(0)


def test_axes_that_are_turned_are_known() -> None:
    def forward(x):  # type: ignore[no-untyped-def]
        return x.T, x.transpose(2, 0, 1), np.moveaxis(x, 0, -1), np.rollaxis(x, 2), x.mT, x[0].T

    x = RNG.standard_normal((2, 3, 4))
    for node in recorded(forward, x).results:
        array = node.args[0].value
        order = turned(node)
        assert order is not None
        np.testing.assert_array_equal(node.value, np.transpose(array, order))
        assert is_transpose(node) == (order[-2:] == (array.ndim - 1, array.ndim - 2))
