"""Every kernel does what its `SPEC` declares, and its `SPEC` declares all that it does."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch.caches import kernel_of
from handgrad.errors import ArgumentError
from handgrad.kernels.concatenate import concatenate
from handgrad.kernels.sums import add
from handgrad.ops import OPS, relu
from tests.ops.cases import SMALL_CASES, Case, each, leaves, mapped
from tests.rows import rows

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no kernels in this installation")

NAMES = sorted(each for each in (*OPS, "decoder_loop") if kernels.has(each))


def spec(op: str) -> Any:
    return kernel_of(op)


@rows("op", NAMES)
def test_the_declaration_names_the_op_and_the_residuals_that_it_takes(op: str) -> None:
    declared = spec(op)
    assert declared.op == op
    functions = declared.forward, declared.backward
    takes = ["residual" in inspect.signature(function).parameters for function in functions]
    assert takes == [declared.adds_residual_forward, declared.adds_residual_backward]


def captured(call: Any, batch: tuple[np.ndarray, ...]) -> tuple[Any, Any]:
    """The result of a call, and the capture of its native calls."""
    capture = kernels.native.Capture(batch, 1 << 30)
    capture.begin()
    try:
        return call(), capture
    finally:
        capture.end()


def called(case: Case, arrays: dict[str, np.ndarray], dy: Any) -> list[np.ndarray]:
    y, cache = case.forward(arrays)
    return [np.asarray(each) for each in leaves((y, case.module.backward(dy, cache)))]


@each([case for case in SMALL_CASES if case.op in NAMES])
def test_calls_of_a_capturable_kernel_are_replayed_on_other_values(case: Case) -> None:
    arrays = {name: np.array(array, order="C") for name, array in case.arrays(np.float32).items()}
    y, _ = case.forward(arrays)
    dy = mapped(np.array, case.random_like(y, "cotangent", np.float32))
    inputs = tuple(each for each in (*arrays.values(), *leaves(dy)) if each.dtype.kind == "f")
    found, capture = captured(lambda: called(case, arrays, dy), inputs)
    if not spec(case.op).capturable:
        assert capture.reason
        return
    if case.op == "squared_error" and case.options.get("reduction") != "none":
        assert capture.reason == "a kernel returned a value"
        return
    assert capture.reason == ""
    others = tuple(np.array(np.flip(each) / 2) for each in inputs)
    assert capture.replay(others)
    replayed = [each.copy() for each in found]
    for mine, other in zip(inputs, others, strict=True):
        np.testing.assert_array_equal(mine, other)
    for again, new in zip(replayed, called(case, arrays, dy), strict=True):
        np.testing.assert_array_equal(again, new)


@pytest.mark.parametrize(
    "convert",
    [lambda x: x.astype(x.dtype.newbyteorder(">")), np.asfortranarray, lambda x: x[::-1]],
    ids=["big-endian", "Fortran order", "reversed"],
)
def test_an_array_that_is_converted_for_a_kernel_invalidates_a_capture(convert: Any) -> None:
    x = convert(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    _, capture = captured(lambda: relu.forward(x), (x,))
    assert capture.reason
    assert len(capture) == 0


def test_a_residual_that_a_kernel_does_not_add_invalidates_a_capture() -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    (y, cache), capture = captured(lambda: relu.forward(x, residual=x), (x,))
    assert capture.reason
    np.testing.assert_array_equal(y, x + np.maximum(x, 0))
    dx, capture = captured(lambda: relu.backward(x, cache, residual=x), (x,))
    assert capture.reason
    np.testing.assert_array_equal(dx, x + x * (x > 0))


@each([case for case in SMALL_CASES if case.op in NAMES and spec(case.op).forward_capturable])
def test_forward_that_is_capturable_is_replayed_or_invalidates_its_capture(case: Case) -> None:
    arrays = {name: np.array(array, order="C") for name, array in case.arrays(np.float32).items()}
    inputs = tuple(each for each in arrays.values() if each.dtype.kind == "f")
    (found, _), capture = captured(lambda: case.forward(arrays), inputs)
    if capture.reason:
        words = ("lengths", "mask", "random numbers", "copied", "more than native calls")
        assert any(word in capture.reason for word in words)
        return
    assert capture.replay(tuple(np.array(np.flip(each) / 2) for each in inputs))
    replayed = [np.array(each) for each in leaves(found)]
    for again, new in zip(replayed, leaves(case.forward(arrays)[0]), strict=True):
        np.testing.assert_array_equal(again, new)


@pytest.mark.parametrize("size", [0, 3, 30000])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sums_and_concatenations_are_replayed_or_invalidate_a_capture(
    size: int, dtype: Any
) -> None:
    x = np.linspace(-1, 1, 2 * size, dtype=dtype).reshape(2, 1, size)
    for call in (lambda: add(x, x), lambda: concatenate((x, x))):
        found, capture = captured(call, (x,))
        assert bool(capture.reason) == (dtype == np.float16)
        if not capture.reason:
            assert capture.replay((x + 1,))
            np.testing.assert_array_equal(found, call())


def test_a_frozen_capture_keeps_what_it_packed_of_the_weights() -> None:
    from handgrad.ops import conv2d

    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal(shape, np.float32) for shape in ((1, 3, 5, 5), (4, 3, 3, 3)))
    for frozen in (False, True):
        capture = kernels.native.Capture((x,), 1 << 30, frozen=frozen)
        capture.begin()
        y, _ = conv2d.forward(x, weight)
        capture.end()
        expected = y.copy()
        assert capture.replay((x.copy(),))
        weight *= 2
        assert capture.replay((x.copy(),))
        np.testing.assert_array_equal(y, expected if frozen else 2 * expected)


def test_a_capture_inside_of_another_one_invalidates_that() -> None:
    x = np.ones((2, 3), np.float32)
    (_, inner), outer = captured(lambda: captured(lambda: relu.forward(x), (x,)), (x,))
    assert outer.reason
    assert inner.reason == ""
    assert len(inner) == 1


def test_only_where_it_is_declared_a_gradient_takes_the_memory_of_the_cache() -> None:
    from handgrad.ops import cross_entropy, gelu

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    loss, cache = cross_entropy.forward(x, np.array([0, 2, 1, 1]))
    expected = cross_entropy.backward(np.ones_like(loss), cache)
    assert cross_entropy.backward(np.ones_like(loss), cache, out=(x,)) is x
    np.testing.assert_array_equal(x, expected)
    y, cache = gelu.forward(x)
    with pytest.raises(ArgumentError, match="overlaps in memory"):
        gelu.backward(y, cache, out=(x,))
    assert math.isfinite(x.sum())
