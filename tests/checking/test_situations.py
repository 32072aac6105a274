"""Inputs made for what a forward contains: each finds a bug that the inputs at hand hide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking.contents import contents
from handgrad.checking.report import CheckReport

rng = np.random.default_rng(5)
Backward = Callable[[Any, Any], Any]


def n(*shape: int) -> np.ndarray:
    return np.asarray(rng.standard_normal(shape))


class Case(NamedTuple):
    """A forward, a right backward, one that is wrong in a situation, and inputs that hide it."""

    situation: str
    forward: Callable[..., Any]
    right: Backward
    wrong: Backward
    inputs: list[np.ndarray]


def lookup(table: Any, rows: Any) -> Any:
    return table[rows] * 2.0, (table.shape, rows)


def lookup_right(dy: Any, cache: Any) -> Any:
    shape, rows = cache
    dtable = np.zeros(shape, dy.dtype)
    np.add.at(dtable, rows, 2.0 * dy)
    return dtable


def lookup_wrong(dy: Any, cache: Any) -> Any:
    shape, rows = cache
    dtable = np.zeros(shape, dy.dtype)
    dtable[rows] = 2.0 * dy
    return dtable


def scaled(x: Any, gain: Any) -> Any:
    return np.tanh(x) * gain + 0.5 * gain * gain, (x, gain)


def scaled_right(dy: Any, cache: Any) -> Any:
    x, gain = cache
    t = np.tanh(x)
    return dy * gain * (1 - t * t), (dy * (t + gain)).sum(axis=0)


def scaled_wrong(dy: Any, cache: Any) -> Any:
    t = np.tanh(cache[0])
    return dy * (1 - t * t), (dy * (t + 1)).sum(axis=0)


def masked_mean(x: Any, mask: Any) -> Any:
    count = np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return (x * mask).sum(axis=1, keepdims=True) / count, (mask, count)


def masked_mean_right(dy: Any, cache: Any) -> Any:
    mask, count = cache
    return dy * mask / count


def masked_mean_wrong(dy: Any, cache: Any) -> Any:
    mask, count = cache
    return dy * np.where(mask.any(axis=1, keepdims=True), mask / count, 1.0)


def product(a: Any, b: Any) -> Any:
    return a * b * b, (a, b)


def product_right(dy: Any, cache: Any) -> Any:
    a, b = cache
    return dy * b * b, 2 * dy * a * b


def product_wrong(dy: Any, cache: Any) -> Any:
    a, b = cache
    return dy * a * b, 2 * dy * b * b


def linear(x: Any, w: Any) -> Any:
    return x @ w / x.shape[1], (x, w)


def linear_right(dy: Any, cache: Any) -> Any:
    x, w = cache
    return dy @ w.T / x.shape[1], x.T @ dy / x.shape[1]


def linear_wrong(dy: Any, cache: Any) -> Any:
    x, w = cache
    return dy @ w.T / len(x), x.T @ dy / len(x)


def leaky(x: Any) -> Any:
    return np.where(x > 0, x, 0.1 * x), x


def leaky_right(dy: Any, x: Any) -> Any:
    return dy * np.where(x > 0, 1.0, 0.1).astype(dy.dtype)


def leaky_wrong(dy: Any, x: Any) -> Any:
    return dy * (x > 0)


def steps(x: Any, u: Any) -> Any:
    h = [np.zeros((len(x), len(u)), x.dtype)]
    for t in range(x.shape[1]):
        h.append(np.tanh(x[:, t] + h[-1] @ u))
    return h[-1], (x.shape, u, h)


def steps_right(dy: Any, cache: Any) -> Any:
    shape, u, h = cache
    dx, du, dh = np.zeros(shape, dy.dtype), np.zeros_like(u), dy
    for t in reversed(range(shape[1])):
        da = dh * (1 - h[t + 1] ** 2)
        dx[:, t] = da
        du += h[t].T @ da
        dh = da @ u.T
    return dx, du


def steps_wrong(dy: Any, cache: Any) -> Any:
    shape, u, h = cache
    dx, du = np.zeros(shape, dy.dtype), np.zeros_like(u)
    for t in reversed(range(shape[1])):
        da = dy * (1 - h[t + 1] ** 2)
        dx[:, t] = da
        du += h[t].T @ da
    return dx, du


SAME = n(4, 3)
CASES = [
    Case("repeated indices", lookup, lookup_right, lookup_wrong, [n(6, 3), np.array([4, 0, 2])]),
    Case("weights that are not one", scaled, scaled_right, scaled_wrong, [n(5, 3), np.ones(3)]),
    Case(
        "a masked row",
        masked_mean,
        masked_mean_right,
        masked_mean_wrong,
        [n(3, 4), np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 0]], bool)],
    ),
    Case("factors that differ", product, product_right, product_wrong, [SAME, SAME.copy()]),
    Case("one row", linear, linear_right, linear_wrong, [n(4, 4), n(4, 4)]),
    Case("both signs", leaky, leaky_right, leaky_wrong, [np.abs(n(4, 3)) + 0.1]),
    Case("four steps", steps, steps_right, steps_wrong, [n(3, 1, 2), n(2, 2)]),
]


def by_situation(case: Case) -> str:
    return case.situation


def tried(report: CheckReport, verdict: str) -> set[str]:
    return {row.situation for row in report.trials if row.verdict == verdict}


@pytest.mark.parametrize("case", CASES, ids=by_situation)
def test_a_right_backward_is_right_there(case: Case) -> None:
    report = hg.check((case.forward, case.right), *case.inputs)
    assert report.verdict == "right", str(report)
    assert case.situation in tried(report, "right")
    assert case.situation in " ".join(str(report).split())
    assert {"situation": case.situation, "verdict": "right", "detail": ""} in report.to_dict()[
        "trials"
    ]


@pytest.mark.parametrize("case", CASES, ids=by_situation)
def test_a_backward_that_is_wrong_only_there_is_found(case: Case) -> None:
    report = hg.check((case.forward, case.wrong), *case.inputs)
    assert report.verdict == "wrong", str(report)
    assert case.situation in tried(report, "wrong")
    assert tried(report, "right") >= {"usual"}


class Normalised:
    """A layer whose gain starts at one, with a wrong dx that this hides."""

    def __init__(self) -> None:
        self.gain = np.ones(4)

    def forward(self, x: Any) -> Any:
        self.x = x
        return np.tanh(x) * self.gain

    def backward(self, dy: Any) -> Any:
        t = np.tanh(self.x)
        self.dgain = (dy * t).sum(axis=0)
        return dy * (1 - t * t)


def test_parameters_of_an_object_have_other_values_too() -> None:
    report = hg.check(Normalised(), n(5, 4))
    assert [fault.gradient for fault in report.faults] == ["x"]
    assert "weights that are not one" in tried(report, "wrong")


def test_every_tied_value_getting_all_is_remarked_on() -> None:
    def forward(x: Any) -> Any:
        top = x.max(axis=1, keepdims=True)
        return top * 3.0, x == top

    def shared(dy: Any, on: Any) -> Any:
        return 3.0 * dy * on / on.sum(axis=1, keepdims=True)

    def to_each(dy: Any, on: Any) -> Any:
        return 3.0 * dy * on

    x = n(4, 5)
    for backward in (shared, to_each):
        report = hg.check((forward, backward), x)
        assert report.verdict == "right", str(report)
        remarked = any("on ties" in each.message for each in report.remarks)
        assert remarked == (backward is to_each)


@pytest.mark.parametrize(
    ("forward", "right"),
    [
        # A permutation, which repeated indices would not be.
        (lambda x, order: (x[order], order), lambda dy, order: dy[np.argsort(order)]),
    ],
)
def test_what_is_meant_alone_is_left_alone(forward: Any, right: Any) -> None:
    report = hg.check((forward, right), n(4, 3), np.array([2, 0, 3, 1]))
    assert report.verdict == "right", str(report)


def helper(x: Any) -> Any:
    return np.sort(x, axis=0)


class Holds:
    """A network of layers, which do what it contains."""

    def __init__(self) -> None:
        self.layers = [Normalised()]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer.forward(x)
        return helper(x)

    def backward(self, dy: Any) -> Any:
        return dy


def test_what_a_forward_contains_is_read_through_its_helpers() -> None:
    found = contents(Holds())
    assert {"sort", "tanh", "loop", "forward"} <= found
    assert "index" in contents((lookup, lookup_right))
    assert contents(np.tanh) == frozenset()
