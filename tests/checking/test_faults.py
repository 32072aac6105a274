"""Every way to be wrong has a sentence, and none is invented."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Layer
from tests.checking.functions import (
    W,
    X,
    backward,
    forward,
    normal,
    only_kind,
    reported,
    square,
    square_backward,
)


def returning(value):
    """A backward of `square` that returns what `value` makes of the right gradient.

    A lambda, in which no cause can be read.
    """
    return square, lambda dy, x: value(2.0 * x * dy)


def raises(dy, x):
    raise KeyError("no such gradient")


FAULTS = {
    "raises": ((square, raises), "raises", ("backward raises KeyError", "no such gradient")),
    "no array": (
        (lambda x: str(x), square_backward),
        "wrong type",
        ("forward returns y as a str", "arrays of numbers"),
    ),
    "too many": (returning(lambda dx: (dx, dx)), "wrong count", ("returns 2", "allowed: 1")),
    "none": (returning(lambda dx: None), "wrong type", ("dx is None",)),
    "a string": (returning(lambda dx: "dx"), "wrong type", ("dx is a str",)),
    "NaN": (returning(lambda dx: dx * np.nan), "not finite", ("dx is not finite", "20 of 20")),
    "infinite": (returning(lambda dx: dx / 0.0), "not finite", ("dx is not finite",)),
    "too long": (returning(lambda dx: np.concatenate([dx, dx])), "wrong shape", ("(8, 5)",)),
    "flat": (returning(lambda dx: dx.ravel()), "wrong shape", ("(20,)", "(4, 5)")),
    "one row more": (returning(lambda dx: dx[None]), "wrong shape", ("(1, 4, 5)", "(4, 5)")),
    "integers": (returning(lambda dx: dx.astype(int)), "wrong type", ("int64",)),
}


@pytest.mark.parametrize(("functions", "kind", "words"), FAULTS.values(), ids=FAULTS)
def test_a_malformed_result_is_named(functions, kind, words):
    fault = only_kind(functions, normal(4, 5))
    assert fault.kind == kind
    for word in words:
        assert word in fault.message
    assert fault.confidence > 0.0


def test_a_forward_that_raises_is_named():
    def broken(x):
        raise ZeroDivisionError("nothing to divide by")

    fault = only_kind((broken, square_backward), normal(4, 5))
    assert fault.kind == "raises"
    assert "forward raises ZeroDivisionError: nothing to divide by" in fault.message


def test_too_few_gradients_are_named():
    fault = only_kind((forward, lambda dy, cache: backward(dy, cache)[0]), X, W)
    assert fault.kind == "wrong count"
    assert "backward returns 1 gradient; allowed: 2, for x, w" in fault.message


def test_one_of_several_gradients_is_none():
    fault = only_kind((forward, lambda dy, cache: (backward(dy, cache)[0], None)), X, W)
    assert (fault.gradient, fault.kind) == ("w", "wrong type")
    assert "dw is None" in fault.message


def test_another_type_of_floats_is_a_remark():
    def wide(dy, x):
        return np.full(x.shape, 2.0) * x * dy

    report = hg.check((square, wide), normal(4, 5))
    (remark,) = report.remarks
    assert report.verdict == "right"
    assert (remark.kind, remark.situation) == ("wrong type", "float32")
    assert "dx is of float64, x of float32" in remark.message

    report = hg.check(returning(lambda dx: dx.astype(np.float32)), normal(4, 5))
    assert report.verdict == "right"
    assert "dx is of float32, x of float64" in report.remarks[0].message


def writes_dy(dy, x):
    dy *= 2.0
    return dy * x


def masks_dy(dy, x):
    dy[x < 0] = 0.0  # a second time nothing changes any more
    return dy * (x > 0)


def writes_cache(dy, x):
    x *= 2.0
    return x * dy


@pytest.mark.parametrize(
    ("forward", "backward", "name"),
    [
        (square, writes_dy, "dy"),
        (lambda x: (np.maximum(x, 0), x), masks_dy, "dy"),
        (square, writes_cache, "x"),
        (lambda x: (x * x, {"x": x.copy()}), lambda dy, c: writes_cache(dy, c["x"]), "cache['x']"),
    ],
)
def test_a_write_is_reported_with_the_name_of_what_is_written_to(forward, backward, name):
    written = [
        each for each in reported((forward, backward), normal(4, 5)) if each.kind == "written to"
    ]
    assert name in {fault.term for fault in written}
    assert f"{name} is written to" in " ".join(fault.message for fault in written)


def test_a_backward_that_accumulates_is_named():
    def with_buffer(x):
        return x * x, (x, np.zeros_like(x))

    def accumulates(dy, cache):
        x, buffer = cache
        buffer += 2.0 * x * dy
        return buffer.copy()

    faults = reported((with_buffer, accumulates), normal(4, 5))
    (fault,) = (each for each in faults if each.kind == "not repeatable")
    assert "twice as large" in fault.message


def test_a_tape_that_backward_uses_up_is_judged_by_its_first_call():
    def taped(x):
        return x * x, [x]

    def unwound(dy, tape):
        return 2.0 * tape.pop() * dy

    report = hg.check((taped, unwound), normal(4, 5))
    assert report.verdict == "right"
    assert "a second call with the same cache is not possible" in report.remarks[0].message
    report = hg.check((taped, lambda dy, tape: 3.0 * tape.pop() * dy), normal(4, 5))
    assert report.verdict == "wrong"


def test_a_backward_that_needs_a_contiguous_cotangent_is_named():
    def flat(dy, x):
        return 2.0 * x * dy.ravel(order="K").reshape(x.shape)

    fault = only_kind((square, flat), normal(4, 5))
    assert fault.kind == "strided cotangent"
    assert fault.situation == "transposed cotangent"
    assert "right when dy is contiguous" in fault.message


def test_a_fault_of_one_situation_is_told_with_it():
    def fails_on_one_row(dy, x):
        return 2.0 * x * dy if len(x) != 1 else x * dy

    (fault,) = reported((square, fails_on_one_row), normal(4, 5))
    assert fault.situation == "one row"
    assert "one row" in fault.message


def test_a_forward_that_is_not_that_of_like_is_named():
    faults = reported((square, square_backward), like="tanh")
    assert faults[0].kind == "forward differs"
    assert "tanh" in faults[0].message


# Nothing is invented


# The wrong backwards have no source: where one can be read, the noise is a term too many.


def noise(array):
    return np.random.default_rng(array.size).normal(size=array.shape)


def without_source(text, **names):
    return eval(text, {"np": np, "noise": noise, **names})


@pytest.mark.parametrize(
    "wrong",
    [
        "lambda dy, x: 2.0 * x * dy + noise(x) @ dy.T @ noise(x)",
        "lambda dy, x: 2.0 * x * dy + np.sin(17.0 * x * dy)",
        "lambda dy, x: dy[::-1] * noise(x)",
    ],
    ids=["noise", "a sine", "a mix"],
)
def test_what_fits_no_explanation_is_unknown(wrong):
    fault = reported((square, without_source(wrong)), normal(4, 5))[0]
    assert (fault.gradient, fault.kind, fault.term) == ("x", "unknown", "")
    assert fault.confidence == 0.0
    assert "no explanation" in fault.message


@pytest.mark.parametrize(
    "wrong",
    [
        lambda dy, x: 2.0 * x * dy + noise(x) * np.abs(dy) ** 0.7,
        lambda dy, x: 2.0 * x * dy + np.abs(np.sin(17.0 * x * dy)),
    ],
    ids=["noise", "a size"],
)
def test_what_does_not_turn_with_dy_is_said_to(wrong):
    fault = reported((square, wrong), normal(4, 5))[0]
    assert (fault.gradient, fault.kind) == ("x", "not linear")
    assert "not linear in dy" in fault.message


def test_noise_where_a_source_can_be_read_is_a_term_too_many():
    wrong = lambda dy, x: 2.0 * x * dy + noise(x) @ dy.T @ noise(x)  # noqa: E731
    fault = reported((square, wrong), normal(4, 5))[0]
    assert fault.kind == "extra term"
    assert "+    wrong = lambda dy, x: 2.0 * x * dy" in fault.diff


def test_noise_on_a_known_op_is_unknown():
    text = "lambda dy, cache: (right(dy, cache)[0] + noise(dy) * dy, *right(dy, cache)[1:])"
    wrong = without_source(text, right=hg.ops.layer_norm.backward)
    faults = [each for each in reported(wrong, like="layer_norm") if each.situation == "usual"]
    assert [(fault.gradient, fault.kind) for fault in faults] == [("x", "unknown")]


def test_an_explanation_needs_something_that_it_excludes():
    """One row, and values of one sign: "right except on row 0" or "where x > 0" says nothing."""
    functions = square, without_source("lambda dy, x: 2.0 * x * dy + noise(x) * dy")
    fault = reported(functions, np.abs(normal(1, 6)) + 0.1)[0]
    assert fault.kind == "unknown", fault.message


def test_a_wrong_layer_is_found_in_its_model():
    class WrongTanh(Layer):
        def forward(self, x, *, training=False):
            y = np.tanh(x)
            return y, y

        def backward(self, dy, cache, **_):
            return dy * (1.0 - cache), {}

    rng = np.random.default_rng(1)
    wrong = hg.Sequential(
        first=hg.Dense(3, 5, rng=rng), middle=WrongTanh(), last=hg.Dense(5, 2, rng=rng)
    )
    faults = reported(wrong, X)
    assert any("middle" in fault.gradient + fault.message for fault in faults)
    assert not any("last" in fault.gradient for fault in faults)


def test_the_line_of_the_fault_is_told():
    def wrong(dy, cache):
        x, w, y = cache
        da = dy * (1.0 + y * y)
        return da @ w.T, x.T @ da

    first = wrong.__code__.co_firstlineno
    assert f"line {first + 2}" in reported((forward, wrong), X, W)[0].message
