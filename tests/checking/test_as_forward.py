"""Faults that forward tells of: its numbers, its windows, and which of equal changes is meant."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg
from tests.checking.functions import normal
from tests.checking.test_named_lines import mended


def quick_gelu(x: Any) -> Any:
    s = 1 / (1 + np.exp(-1.702 * x))
    return x * s, (x, s)


def of_two_lines(dout: Any, cache: Any) -> Any:
    x, s = cache
    ds = s * (1 + s)
    return dout * (s + x * ds)


def of_one_line(dout: Any, cache: Any) -> Any:
    x, s = cache
    return dout * s * s * (1 + x * (1 - s))


def test_two_faults_of_one_product_of_which_one_is_a_number_of_forward() -> None:
    for backward, line in (
        (of_two_lines, "ds = 1.702 * s * (1 - s)"),
        (of_one_line, "return dout * s * (1 + 1.702 * x * (1 - s))"),
    ):
        report = hg.check((quick_gelu, backward), normal(4, 3))
        assert mended(report) == [line]


def dilated(x: Any, w: Any, dilation: int = 2) -> Any:
    n, _, height, width = x.shape
    f, _, k, _ = w.shape
    over = dilation * (k - 1)
    y = np.zeros((n, f, height - over, width - over))
    for i in range(height - over):
        for j in range(width - over):
            rows = slice(i, i + over + 1, dilation)
            cols = slice(j, j + over + 1, dilation)
            y[:, :, i, j] = np.tensordot(x[:, :, rows, cols], w, axes=([1, 2, 3], [1, 2, 3]))
    return y, (x, w, dilation)


def not_dilated(dy: Any, cache: Any) -> Any:
    x, w, dilation = cache
    k = w.shape[2]
    over = dilation * (k - 1)
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(x.shape[2] - over):
        for j in range(x.shape[3] - over):
            rows = slice(i, i + k)
            cols = slice(j, j + k)
            dw += np.tensordot(dy[:, :, i, j], x[:, :, rows, cols], axes=([0], [0]))
            dx[:, :, rows, cols] += np.tensordot(dy[:, :, i, j], w, axes=([1], [0]))
    return dx, dw


def test_both_sides_of_a_window_are_as_forward_has_them() -> None:
    faults = hg.check((dilated, not_dilated), normal(1, 2, 5, 5), normal(2, 2, 2, 2)).faults
    assert {fault.gradient for fault in faults} == {"x", "w"}
    for fault in faults:
        assert "rows and cols belong there as forward has them" in fault.message
        assert fault.line == not_dilated.__code__.co_firstlineno + 7


def normalized(x: Any, gamma: Any) -> Any:
    centred = x - x.mean(axis=0)
    std = np.sqrt((centred**2).mean(axis=0) + 1e-5)
    unit = centred / std
    return gamma * unit, (centred, std, unit, gamma)


def without_gamma(dout: Any, cache: Any) -> Any:
    centred, std, unit, gamma = cache  # noqa: RUF059  (the fault)
    dgamma = np.sum(dout * unit, axis=0)
    dxhat = dout
    first = dxhat / std
    dstd = -np.sum(dxhat * centred, axis=0) / std**2
    second = first + dstd * centred / (len(dout) * std)
    return second - second.mean(axis=0), dgamma


def test_a_factor_belongs_where_the_first_line_lacks_it() -> None:
    report = hg.check((normalized, without_gamma), normal(5, 3), normal(3))
    assert mended(report) == ["dxhat = dout * gamma"]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    y = e / e.sum(axis=1, keepdims=True)
    return y, y


def a_mean_called_sum(dout: Any, y: Any) -> Any:
    dx = y * dout
    sumdx = np.mean(dx, axis=1, keepdims=True)
    dx -= y * sumdx
    return dx


def not_taken_off(dout: Any, y: Any) -> Any:
    dx = y * dout
    sumdx = np.sum(dx, axis=1, keepdims=True)  # noqa: F841  (the fault)
    return dx


def test_what_a_variable_is_called_is_what_it_is_computed_by() -> None:
    report = hg.check((softmax, a_mean_called_sum), normal(4, 3))
    assert mended(report) == ["sumdx = np.sum(dx, axis=1, keepdims=True)"]


def test_an_update_by_what_is_computed_and_never_used() -> None:
    report = hg.check((softmax, not_taken_off), normal(4, 3))
    assert mended(report) == ["dx -= y * sumdx"]
