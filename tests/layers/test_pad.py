"""Pad: values around every example, and the places that their gradients come back to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import Pad

#: NumPy's names of the modes.
NAMES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
X = np.random.default_rng(0).standard_normal((2, 3, 4))


@pytest.mark.parametrize("mode", NAMES)
@pytest.mark.parametrize("padding", [(0, 3), (3, 2), (2, 0, 1, 2), (0, 0, 2, 2)])
def test_values_are_those_of_numpys_pad(mode: str, padding: tuple[int, ...]) -> None:
    widths = [(0, 0)] * (3 - len(padding) // 2)
    widths += [padding[i : i + 2] for i in range(len(padding) - 2, -1, -2)]
    options: dict[str, Any] = {"constant_values": 0.7} if mode == "constant" else {}
    expected = np.pad(X, widths, NAMES[mode], **options)
    layer = Pad(padding, mode=mode, value=0.7)
    y, _ = layer.forward(X)
    np.testing.assert_array_equal(y, expected)
    assert layer.output_shape(X.shape[1:]) == y.shape[1:]


@pytest.mark.parametrize("mode", NAMES)
def test_a_value_that_is_no_number_stays_where_it_is_copied(mode: str) -> None:
    x = X.copy()
    x[0, 0, 0] = np.inf
    y, cache = Pad((2, 1), mode=mode).forward(x)
    assert np.isfinite(y[1]).all()
    assert not np.isnan(y).any()
    dy = np.random.default_rng(1).standard_normal(y.shape)
    dx, _ = Pad((2, 1), mode=mode).backward(dy, cache)
    assert dx is not None
    assert np.isfinite(dx).all()


def test_settings_that_are_refused() -> None:
    with pytest.raises(ArgumentError, match="mode is 'mirror'; allowed: constant, reflect"):
        Pad((1, 1), mode="mirror")
    for padding in ((1,), (1, -1), (1.0, 1), (), 1):
        with pytest.raises(ArgumentError, match="allowed: two ints from 0 for every axis"):
            Pad(padding)  # type: ignore[arg-type]


@pytest.mark.parametrize(("mode", "least"), [("reflect", 3), ("circular", 2), ("replicate", 1)])
def test_an_example_shorter_than_its_copy_is_refused(mode: str, least: int) -> None:
    layer = Pad((2, 1), mode=mode)
    assert layer.forward(X[..., :least])[0].shape == (2, 3, least + 3)
    with pytest.raises(ShapeError, match=f"allowed: {least} values or more along axis 1"):
        layer.forward(X[..., : least - 1])


def test_an_example_with_too_few_axes_is_refused() -> None:
    with pytest.raises(ShapeError, match="allowed: 2 axes or more"):
        Pad((1, 1, 1, 1)).forward(X[:, 0])


def test_more_values_than_any_memory_holds_are_refused() -> None:
    with pytest.raises(ShapeError, match="an example of y would have shape"):
        Pad((2**62, 0)).forward(X)
