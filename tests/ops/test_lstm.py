"""LSTM: its backward in two parts, the order of its gates, and the form that the notes give it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops import lstm
from tests.ops.cases import SMALL_CASES, Case, each, leaves
from tests.tolerances import assert_close

CASES = [case for case in SMALL_CASES if case.op == "lstm"]


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-a))


@each(CASES)
def test_the_two_parts_are_the_whole(case: Case, on_engine: str) -> None:
    y, cache = case.forward(case.arrays())
    doutputs = case.random_like(y, "cotangent")
    expected = tuple(case.backward(doutputs, cache).values())
    dx, dh0, dc0, steps = lstm.backward_data(doutputs, cache)
    found = (dx, *lstm.backward_weights(steps, cache), dh0, dc0)
    for ours, right in zip(found, expected, strict=True):
        if on_engine == "reference" or right is None:
            np.testing.assert_array_equal(ours, right)
        else:  # the parts are the reference, also of a kernel's cache
            assert_close(ours, right, "float64")


@each(CASES)
def test_the_weights_gradients_accumulate(case: Case) -> None:
    y, cache = case.forward(case.arrays())
    *_, first = lstm.backward_data(case.random_like(y, "first"), cache)
    *_, second = lstm.backward_data(case.random_like(y, "second"), cache)
    totals = lstm.backward_weights(first, cache)
    before = [array.copy() for array in leaves(totals)]
    both = lstm.backward_weights(second, cache, totals)
    alone = lstm.backward_weights(second, cache)
    for total, one, other in zip(leaves(both), before, leaves(alone), strict=True):
        np.testing.assert_array_equal(total, one + other)
    for now, then in zip(leaves(totals), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_the_form_of_the_notes() -> None:
    """Gates i, f, o, c′ of one stacked vector [h; x], step by step."""
    rng = np.random.default_rng(0)
    x, stacked, bias = (rng.standard_normal(shape) for shape in ((2, 5, 3), (16, 7), 16))
    h, c = rng.standard_normal((2, 2, 4))
    order = ("ifoc", "ifgo")
    (y, (h_n, c_n)), _ = lstm.forward(
        x,
        lstm.gate_order(stacked[:, 4:], *order),
        lstm.gate_order(stacked[:, :4], *order),
        lstm.gate_order(bias, *order),
        h0=h,
        c0=c,
    )
    for t in range(5):
        a = np.concatenate((h, x[:, t]), axis=1) @ stacked.T + bias
        i, f, o = (sigmoid(a[:, 4 * k : 4 * k + 4]) for k in range(3))
        c = i * np.tanh(a[:, 12:]) + f * c
        h = o * np.tanh(c)
        assert_close(y[:, t], h, "float64", f"h at step {t}")
    assert_close(h_n, h, "float64")
    assert_close(c_n, c, "float64")


@pytest.mark.parametrize("other", ["ifog", "ifoc", "iofc", "ogfi"])
def test_gate_order_there_and_back(other: str) -> None:
    weight = np.arange(24.0).reshape(12, 2)
    turned = lstm.gate_order(weight, "ifgo", other)
    start = 3 * other.index("o")
    np.testing.assert_array_equal(turned[start : start + 3], weight[9:])
    np.testing.assert_array_equal(lstm.gate_order(turned, other, "ifgo"), weight)


@pytest.mark.parametrize(
    ("error", "arguments", "message"),
    [
        (ArgumentError, (np.zeros(8), "ifgo", "ifg"), "gate_order: to is 'ifg'; allowed: the lett"),
        (ArgumentError, (np.zeros(8), "ifgc", "ifgo"), "gate_order: frm is 'ifgc'; allowed: the"),
        (ShapeError, (np.zeros(6), "ifgo", "ifog"), r"weight has shape \(6,\); allowed: \(4 H,"),
    ],
)
def test_a_wrong_order_is_refused(error: type[Exception], arguments: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        lstm.gate_order(*arguments)


def test_a_final_state_without_gradient_may_be_none() -> None:
    case = next(case for case in CASES if case.label == "projection")
    (y, (h, c)), cache = case.forward(case.arrays())
    dy = case.random_like(y, "cotangent")
    expected = lstm.backward((dy, (np.zeros_like(h), np.zeros_like(c))), cache)
    for ours, right in zip(lstm.backward((dy, (None, None)), cache), expected, strict=True):
        np.testing.assert_array_equal(ours, right)
