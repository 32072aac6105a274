"""Lines that no small edit puts right are told as what the derivation has there, in their words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking.report import Fault
from tests.checking.functions import normal


def told(functions: Any, *arrays: Any, **named: Any) -> Fault:
    report = hg.check(functions, *arrays, **named)
    (fault,) = [each for each in report.faults if each.gradient]
    assert fault.kind == "other expression", str(report)
    return fault


def bump(x: Any) -> Any:
    return np.exp(-(x**2)), x


def test_the_derivative_of_another_function() -> None:
    def backward(dy: Any, x: Any) -> Any:
        slope = 1 / (1 + x**2)
        return dy * slope

    fault = told((bump, backward), normal(4, 3))
    assert "exp(−x²)" in fault.message
    assert "belongs where 1/(1 + x²) stands" in fault.message
    assert fault.diff.splitlines()[-1].startswith("+        slope = ")


def logistic(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def gated(x: Any) -> Any: return 3 * x * logistic(2.5 * x), x  # fmt: skip


def gated_backward(dy: Any, x: Any) -> Any: return dy * logistic(x + x) ** 3  # fmt: skip


def test_a_line_behind_the_head_of_its_function_keeps_it() -> None:
    fault = told((gated, gated_backward), normal(4, 3))
    assert fault.diff.splitlines()[-1].startswith("+def gated_backward(dy: Any, x: Any) -> Any: ")


def test_the_user_s_variables_are_the_words() -> None:
    def forward(x: Any, scale: float = 0.7) -> Any:
        z = x - x.max(-1, keepdims=True)
        e = np.exp(scale * z)
        return e / e.sum(-1, keepdims=True), x

    def backward(dy: Any, x: Any, scale: float = 0.7) -> Any:
        share, _ = forward(x, scale)
        return np.tanh(dy) ** 2 - share

    fault = told((forward, backward), normal(4, 3))
    assert "sum(share dy)" in fault.message
    assert "max" not in fault.message


def test_a_condition_of_forward_stays_and_a_bound_that_is_not_reached_goes() -> None:
    def forward(x: Any) -> Any:
        bounded = np.clip(x, -1e6, 1e6)
        return bounded * np.where(x >= -0.1, x + 5, 0.5), x

    def backward(dy: Any, x: Any) -> Any:
        return dy / (7 + x**4)

    fault = told((forward, backward), normal(4, 3))
    assert "where(x >= −0.1, " in fault.message
    assert "1000000" not in fault.message


def test_what_is_taken_at_the_classes_is_told_at_all_of_them() -> None:
    def loss(p: Any, target: Any) -> Any:
        rows = np.arange(len(target))
        return -np.mean(np.log(p[rows, target] + 3.0))

    def loss_backward(p: Any, target: Any) -> Any:
        hot = np.zeros_like(p)
        hot[np.arange(len(target)), target] = 1.0
        return np.sin(p) - hot

    target = np.array([1, 2, 1, 0])
    p = np.abs(normal(4, 3))
    fault = told((loss, loss_backward), p, target)
    assert "hot" in fault.message.split(" belongs where ")[0]


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_a_jacobian_taken_as_its_diagonal(shape: tuple[int, ...]) -> None:
    def shares(z: Any) -> Any:
        e = np.exp(z)
        return e / e.sum(-1, keepdims=True)

    def shares_derivative(z: Any) -> Any:
        s = shares(z)
        return s * (1 - s)

    report = hg.check((shares, shares_derivative), normal(*shape))
    (fault,) = [each for each in report.faults if each.gradient]
    assert fault.kind == "other derivative"
    assert "a matrix: each output of softmax depends on all inputs" in fault.message


def skips(x: Any) -> Any:
    return x + np.apply_along_axis(np.tanh, 0, x), x


def skips_backward(dy: Any, x: Any) -> Any:
    back = dy * np.cos(7 * x) ** 3
    return back + 1


def test_a_number_where_a_gradient_belongs() -> None:
    (fault,) = hg.check((skips, skips_backward), normal(4, 3)).faults
    assert "a gradient belongs where the summand 1 stands" in fault.message
    assert fault.line == skips_backward.__code__.co_firstlineno + 2


def test_two_lines_are_told_each_as_a_whole() -> None:
    def forward(x: Any, w: Any) -> Any:
        return np.tanh(x) * np.exp(w), (x, w)

    def backward(dy: Any, cache: Any) -> Any:
        x, w = cache
        dx = np.cos(x) * np.arctan(dy + w)
        dw = np.sin(w + x) ** 3 * dy
        return dx, dw

    report = hg.check((forward, backward), normal(4, 3), normal(4, 3, seed=1))
    lines = {each.gradient: each.line for each in report.faults if each.kind == "other expression"}
    first = backward.__code__.co_firstlineno
    assert lines == {"x": first + 2, "w": first + 3}
