"""Backwards that raise, or give back too many gradients: the change with which they run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.checking.functions import normal
from tests.checking.test_named_lines import mended


def affine(x: Any, w: Any, b: Any) -> Any:
    return x @ w + b, (x, w)


def not_transposed(dy: Any, cache: Any) -> Any:
    x, w = cache
    dx = dy @ w
    return dx, x.T @ dy, dy.sum(axis=0)


def sums_elsewhere(dy: Any, cache: Any) -> Any:
    x, w = cache
    dx = dy @ w.T
    dw = x @ dy
    return dx, dw, dy.sum(axis=0)


def one_more(dy: Any, cache: Any) -> Any:
    x, w = cache
    grads = dy @ w.T, x.T @ dy, dy.sum(axis=0)
    return grads, w


def one_fewer(dy: Any, cache: Any) -> Any:
    x, w = cache
    dx, dw, db = dy @ w.T, x.T @ dy, dy.sum(axis=0)  # noqa: F841  (the fault)
    return dx, dw


@pytest.mark.parametrize(
    ("backward", "line"),
    [
        (not_transposed, "dx = dy @ w.T"),
        (sums_elsewhere, "dw = x.T @ dy"),
        (one_more, "return grads"),
        (one_fewer, "return dx, dw, db"),
    ],
)
def test_the_change_by_which_a_product_fits(backward: Any, line: str) -> None:
    report = hg.check((affine, backward), normal(4, 3), normal(3, 5), normal(5))
    [fault] = report.faults
    assert report.verdict == "wrong"
    assert fault.kind in ("raises", "wrong count")
    assert mended(report) == [line]
    assert fault.line


def walked(x: Any, w: Any) -> Any:
    h, states = np.zeros(len(w)), []
    for each in x:
        h = np.tanh(each + h @ w)
        states.append(h)
    return np.stack(states), (states, w)


def one_step_further(dy: Any, cache: Any) -> Any:
    states, w = cache
    dw, dx, dh = np.zeros_like(w), np.zeros_like(dy), np.zeros(len(w))
    for t in reversed(range(len(dy))):
        da = (dy[t + 1] + dh) * (1 - states[t] ** 2)
        dx[t] = da
        if t > 0:
            dw += np.outer(states[t - 1], da)
        dh = w @ da
    return dx, dw


def test_an_index_beyond_the_end() -> None:
    report = hg.check((walked, one_step_further), normal(4, 3), normal(3, 3))
    [fault] = report.faults
    assert "backward raises IndexError" in fault.message
    assert mended(report) == ["da = (dy[t] + dh) * (1 - states[t] ** 2)"]


class Linear:
    def __init__(self) -> None:
        self.W = normal(3, 4)

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.W

    def backward(self, dout: Any) -> Any:
        self.dW = self.x @ dout
        return dout @ self.W.T


def test_what_makes_it_run_is_the_gradient_that_the_line_is_called_after() -> None:
    assert mended(hg.check(Linear(), normal(5, 3))) == ["self.dW = self.x.T @ dout"]


def of_no_change(dy: Any, cache: Any) -> Any:
    x, w = cache
    dx = np.linalg.solve(dy, w) @ np.cumsum(dy)
    return dx, x.T @ dy, dy.sum(axis=0)


def test_where_no_change_is_known_the_shape_is_told() -> None:
    report = hg.check((affine, of_no_change), normal(4, 3), normal(3, 5), normal(5))
    [fault] = report.faults
    assert report.verdict == "undecided"
    assert "dx, the gradient of x, is to be of shape (4, 3)" in fault.message
    assert fault.line == of_no_change.__code__.co_firstlineno + 2
