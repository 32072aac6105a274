"""Sources for PyTorch, which their proof runs beside those for NumPy in both precisions."""

import importlib.util

import numpy as np
import pytest

import handgrad as hg


def _kinds(x, slopes):
    """Integers beside floats, numbers chosen by a mask, and a diagonal of ones."""
    n = x.shape[1]
    distance = -np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    bias = slopes[:, None, None] * distance + np.eye(n)
    return np.where(x > 0, 1.0, 0.1)[:, :, None] * np.tanh(bias[: len(x)])


def _placed(x, y, power=2.0):
    """Gradients added at places beside a slice and a new axis, and a branch on a setting."""
    chosen = np.take_along_axis(x, y[:, None], axis=1)[:, 0]
    return (1 - np.tanh(chosen)) ** power * chosen


def _sorted(x):
    return np.sort(x, axis=1)[:, ::-1][:, : x.shape[1] // 2].mean(axis=1)


def _reversed(x):
    """Axes read from their ends, one of them after a new axis, and means that keep every axis."""
    turned = x[None, ::-1, 1:] * np.exp(x)[::-1, None, :-1]
    return turned * (x - x.mean(keepdims=True))[::-1, ::-1][:, 1:]


@pytest.mark.parametrize(
    ("forward", "given"),
    [
        (_reversed, {"x": ("N", "D")}),
        (_kinds, {"x": ("N", "D"), "slopes": ("N",)}),
        (_placed, {"x": ("N", "C"), "y": ("N", int)}),
        (_sorted, {"x": ("N", "D")}),
    ],
)
def test_a_source_for_torch_has_the_values_of_that_for_numpy(forward, given):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    assert "torch.autograd.Function" in hg.derive(forward, **given).to("torch")
