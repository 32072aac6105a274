"""Faults that are found by what a part of a line, or a variable that it reads, would need."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg
from handgrad.checking.report import Fault

rng = np.random.default_rng(4)


def n(*shape: int) -> np.ndarray:
    return np.asarray(rng.standard_normal(shape))


def first(target: Any, *inputs: np.ndarray) -> Fault:
    report = hg.check(target, *inputs)
    assert report.verdict == "wrong", str(report)
    return next(each for each in report.faults if each.gradient)


class Swish:
    def forward(self, x: Any) -> Any:
        self.gate = 1 / (1 + np.exp(-x))
        self.y = x * self.gate
        return self.y

    def backward(self, dy: Any) -> Any:
        rest = 1 - self.gate
        assert rest.shape == dy.shape
        return (self.gate) * dy


def test_a_product_is_missing_beside_a_factor_that_the_object_keeps() -> None:
    fault = first(Swish(), n(5, 3))
    assert "(self.gate + rest * self.y) * dy" in fault.diff


def quick(x: Any) -> Any:
    return x / (1 + np.exp(-1.7 * x))


def quick_prime(x: Any) -> Any:
    a = 1.7
    s = 1 / (1 + np.exp(-a * x))
    return a + x * a * s * (1 - s)


def test_an_array_belongs_where_a_number_stands() -> None:
    fault = first((quick, quick_prime), n(5, 3))
    assert "return s + x * a * s * (1 - s)" in fault.diff


class Norm:
    def __init__(self) -> None:
        self.eps = 1e-3

    def forward(self, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        self.var = (centred**2).mean(-1, keepdims=True)
        self.y = centred / np.sqrt(self.var + self.eps)
        return self.y

    def backward(self, dy: Any) -> Any:
        inverse = 1 / np.sqrt(self.var)
        along = (dy * self.y).mean(-1, keepdims=True)
        return inverse * (dy - dy.mean(-1, keepdims=True) - self.y * along)


def test_an_epsilon_is_forgotten_in_a_line_before() -> None:
    fault = first(Norm(), n(4, 5))
    assert "inverse = 1 / np.sqrt(self.var + self.eps)" in fault.diff


def hard(x: Any) -> Any:
    y = np.array(x)
    y[x <= -3] = 0
    middle = (x > -3) & (x < 3)
    y[middle] = x[middle] * (x[middle] + 3) / 6
    return y, (x, middle)


def hard_backward(dy: Any, cache: Any) -> Any:
    x, middle = cache
    dx = np.array(dy)
    dx[x <= -3] = 0
    dx[middle] = dy[middle] * (x[middle] + 3) / 6
    return dx


def test_a_selection_that_is_empty_ends_no_search() -> None:
    fault = first((hard, hard_backward), n(7, 5))
    assert "2 * x[middle] + 3" in fault.diff


def leaky(x: Any) -> Any:
    return np.where(x > 0, x, 0.1 * x), (x, 0.1)


def leaky_backward(dy: Any, cache: Any) -> Any:
    x, slope = cache
    return np.where(x > 0, dy, slope)


def test_a_factor_is_missing_in_one_branch() -> None:
    assert "np.where(x > 0, dy, slope * dy)" in first((leaky, leaky_backward), n(5, 3)).diff


class Decayed:
    def __init__(self) -> None:
        self.w, self.b, self.rate = n(3, 2), np.zeros(2), 0.1

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.w + self.b

    def backward(self, dy: Any) -> Any:
        self.dw = self.x.T @ dy + self.rate * self.w
        self.db = dy.sum(axis=0)
        return dy @ self.w.T


def test_a_bias_of_zeros_is_no_way_to_leave_a_term_out() -> None:
    assert "is too many" in first(Decayed(), n(4, 3)).message


def picked(logits: Any, t: Any) -> Any:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(t)), t]).sum(), (p, t)


def picked_backward(dy: Any, cache: Any) -> Any:
    p, t = cache
    d = p.copy()
    d[0, t] -= 1
    return dy * d


def test_one_element_of_each_row_is_meant() -> None:
    fault = first((picked, picked_backward), n(4, 3), np.array([0, 2, 1, 0]))
    assert "d[np.arange(len(t)), t] -= 1" in fault.diff


def masked(x: Any, w: Any) -> Any:
    h = np.maximum(x @ w, 0)
    return 2 * h, (x, w, h)


def masked_backward(dout: Any, cache: Any) -> Any:
    x, w, h = cache
    dh = 2 * dout
    dz = dh * (h >= 0)
    return dz @ w.T, x.T @ dz


def test_a_line_that_is_called_after_what_it_holds_is_left_alone() -> None:
    assert "dz = dh * (h > 0)" in first((masked, masked_backward), n(4, 3), n(3, 5)).diff


def test_the_line_that_lacks_what_flows_back_is_told() -> None:
    class Mixed:
        def forward(self, x: Any) -> Any:
            self.x = x
            return np.sin(np.cos(x) * np.arctan(x)) + np.tanh(x * x * x)

        def backward(self, dy: Any) -> Any:
            dinner = np.cos(self.x) * 3.3
            douter = dy * np.tanh(self.x)
            dboth = douter * 7.7 + dinner
            return dboth * np.exp(self.x)

    fault = first(Mixed(), n(5, 3))
    assert "nothing of dy is in dinner = np.cos(self.x) * 3.3" in fault.message


def gated(x: Any, w: Any, u: Any) -> Any:
    h, kept = np.zeros((x.shape[1], w.shape[1])), []
    for t in range(len(x)):
        a = 1 / (1 + np.exp(-(x[t] @ w)))
        c = np.tanh(x[t] @ u)
        kept.append((a, c, h))
        h = a * h + (1 - a) * c
    return h, (x, w, u, kept)


def gated_backward(dh: Any, cache: Any) -> Any:
    x, w, u, kept = cache
    dx, dw, du = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u)
    for t in reversed(range(len(x))):
        a, c, h = kept[t]
        da = dh * (h - c) * a
        dc = dh * (1 - a) * (1 - c**2)
        both = np.hstack([da, dc])
        dx[t] = both @ np.hstack([w, u]).T
        dwu = x[t].T @ both
        dw += dwu[:, : w.shape[1]]
        du += dwu[:, w.shape[1] :]
        dh = dh * (1 - a)
    return dx, dw, du


def test_two_faults_of_a_loop_that_hide_each_other() -> None:
    report = hg.check((gated, gated_backward), n(4, 2, 3), n(3, 4), n(3, 4))
    changed = {line for each in report.faults for line in each.diff.split("\n") if line[:1] == "-"}
    assert {line[1:].strip() for line in changed} == {"da = dh * (h - c) * a", "dh = dh * (1 - a)"}
