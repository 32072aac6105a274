"""The contract every op keeps, on both engines: pure, repeatable, indifferent to memory layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.dispatch import SKIP
from handgrad.errors import ShapeError
from handgrad.ops import dense
from tests.ops.cases import (
    CASES,
    ORDINARY_CASES,
    SMALL_CASES,
    Arrays,
    Case,
    each,
    each_float,
    leaves,
    mapped,
    named_outputs,
)
from tests.rows import rows
from tests.tolerances import assert_close


def bits(gradients: dict[str, Any]) -> dict[str, bytes | None]:
    return {
        name: None if gradient is None else gradient.tobytes()
        for name, gradient in gradients.items()
    }


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@each(CASES)
def test_nothing_is_written_and_backward_repeats(case: Case, on_engine: str) -> None:
    arrays = {name: read_only(array) for name, array in case.arrays(np.float32).items()}
    arrays_before = {name: array.tobytes() for name, array in arrays.items()}
    y, cache = case.forward(arrays)
    cache_before = [array.tobytes() for array in leaves(getattr(cache, "kept", cache))]
    dy = mapped(read_only, case.random_like(y, "cotangent", np.float32))
    dy_before = [array.tobytes() for array in leaves(dy)]

    first = case.backward(dy, cache)
    first_bits = bits(first)
    second = case.backward(dy, cache)

    assert bits(second) == first_bits
    assert bits(first) == first_bits, "the second backward wrote into the gradients of the first"
    assert {name: array.tobytes() for name, array in arrays.items()} == arrays_before
    assert [array.tobytes() for array in leaves(dy)] == dy_before
    assert [array.tobytes() for array in leaves(getattr(cache, "kept", cache))] == cache_before


@each(SMALL_CASES)
def test_forward_repeats(case: Case, on_engine: str) -> None:
    arrays = case.arrays(np.float32)
    first, first_cache = case.forward(arrays)
    first_bits = bits(named_outputs(first))
    second, second_cache = case.forward(arrays)
    assert bits(named_outputs(second)) == first_bits
    assert bits(named_outputs(first)) == first_bits, (
        "the second forward wrote into the output of the first"
    )
    dy = case.random_like(first, "cotangent", np.float32)
    assert bits(case.backward(dy, first_cache)) == bits(case.backward(dy, second_cache))


@each_float
@each(SMALL_CASES)
def test_the_float_type_is_kept(case: Case, dtype: Any, on_engine: str) -> None:
    y, cache = case.forward(case.arrays(dtype))
    assert {output.dtype for output in leaves(y)} == {np.dtype(dtype)}
    gradients = case.backward(case.random_like(y, "cotangent", dtype), cache)
    assert {gradients[name].dtype for name in case.differentiable} == {np.dtype(dtype)}


@each(SMALL_CASES)
def test_gradients_go_where_the_caller_wants_them(case: Case, on_engine: str) -> None:
    arrays = case.arrays(np.float32)
    y, cache = case.forward(arrays)
    dy = case.random_like(y, "cotangent", np.float32)
    expected = case.backward(dy, cache)

    for chosen in case.differentiable:
        size, shape = arrays[chosen].size, arrays[chosen].shape
        flat = np.full(size + 4, np.nan, dtype=np.float32)
        buffer = flat[3 : 3 + size].reshape(shape)
        out = tuple(buffer if name == chosen else SKIP for name in case.gradient_names)
        found = case.backward(dy, cache, out=out)
        assert found[chosen] is buffer
        assert buffer.tobytes() == expected[chosen].tobytes()
        assert np.isnan(flat[[0, 1, 2, -1]]).all(), "written beside the buffer"
        assert all(found[name] is None for name in case.gradient_names if name != chosen)

    allocated = case.backward(dy, cache, out=(None,) * len(case.gradient_names))
    assert bits(allocated) == bits(expected)
    skipped = case.backward(dy, cache, out=(SKIP,) * len(case.gradient_names))
    assert set(skipped.values()) == {None}


@pytest.mark.slow
@each_float
@each(CASES)
def test_what_is_given_is_added_to_y_and_to_the_first_gradient(
    case: Case, dtype: Any, on_engine: str
) -> None:
    kind = np.dtype(dtype).name
    y, cache = case.forward(case.arrays(dtype))
    if isinstance(y, tuple):
        pytest.skip("several outputs")
    residual = read_only(case.random_like(y, "residual", dtype))
    arguments = case.arguments(case.arrays(dtype))
    total, total_cache = case.module.forward(*arguments.args, **arguments.kwargs, residual=residual)
    assert_close(total, residual + y, kind, "y + residual")

    dy = case.random_like(y, "cotangent", dtype)
    expected = case.backward(dy, cache)
    assert bits(case.backward(dy, total_cache)) == bits(expected), (
        "residual is a constant of forward"
    )
    first, *others = case.gradient_names
    residual = read_only(case.random_like(expected[first], "residual", dtype))
    buffer = np.full_like(residual, np.nan)
    for out in (None, (buffer, *(None for _ in others))):
        found = case.backward(dy, cache, residual=residual, out=out)
        assert_close(found.pop(first), residual + expected[first], kind, f"d{first} + residual")
        assert bits(found) == bits({name: expected[name] for name in others})
    skipped = case.backward(dy, cache, residual=residual, out=(SKIP,) * len(case.gradient_names))
    assert set(skipped.values()) == {None}


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_what_is_added_has_the_shape_of_what_it_is_added_to(engine: str) -> None:
    x, weight = np.ones((3, 2)), np.ones((4, 2))
    with hg.engine(engine):
        y, cache = dense.forward(x, weight)
        with pytest.raises(
            ShapeError, match=r"residual is of float64 and has shape \(4,\); allowed: "
        ):
            dense.forward(x, weight, residual=np.ones(4))
        with pytest.raises(ShapeError, match="residual is of float32 and has shape"):
            dense.backward(y, cache, residual=x.astype(np.float32))


def column_major(array: np.ndarray) -> np.ndarray:
    return np.asfortranarray(array)


def every_other(array: np.ndarray) -> np.ndarray:
    spaced = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype=array.dtype)
    spaced[..., ::2] = array
    return spaced[..., ::2]


def backwards(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


def unaligned(array: np.ndarray) -> np.ndarray:
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)[1:]
    shifted = np.frombuffer(memory.data, dtype=array.dtype).reshape(array.shape)
    shifted[...] = array
    return shifted


LAYOUTS = (column_major, every_other, backwards, unaligned)


@pytest.mark.slow
@rows("layout", LAYOUTS)
@each([case for case in ORDINARY_CASES if not case.row.large])
def test_memory_layout_makes_no_difference(case: Case, layout: Any, on_engine: str) -> None:
    def laid_out(arrays: Arrays) -> Arrays:
        return {name: layout(array) if array.ndim else array for name, array in arrays.items()}

    arrays = case.arrays()
    y, cache = case.forward(arrays)
    dy = case.random_like(y, "cotangent")
    expected = {**named_outputs(y), **case.backward(dy, cache)}
    other_y, other_cache = case.forward(laid_out(arrays))
    other_dy = mapped(lambda array: layout(array) if array.ndim else array, dy)
    found = {**named_outputs(other_y), **case.backward(other_dy, other_cache)}
    _assert_same(found, expected, on_engine)


@each([case for case in ORDINARY_CASES if not case.row.large])
def test_a_broadcast_cotangent_is_read_as_it_is(case: Case, on_engine: str) -> None:
    y, cache = case.forward(case.arrays())

    def broadcast(output: np.ndarray) -> np.ndarray:
        row = case.random_like(np.empty(output.shape[1:]), "cotangent")
        return np.broadcast_to(row, output.shape)

    dy = mapped(broadcast, y)
    found = case.backward(dy, cache)
    expected = case.backward(mapped(lambda array: np.array(array, order="C"), dy), cache)
    _assert_same(found, expected, on_engine)


def _assert_same(found: dict[str, Any], expected: dict[str, Any], on_engine: str) -> None:
    """The same bits from a kernel; NumPy, under the reference, may sum in another order."""
    for name, value in expected.items():
        if value is None:
            assert found[name] is None
        elif on_engine == "kernels":
            assert found[name].tobytes() == value.tobytes(), name
        else:
            assert_close(found[name], value, "float64", name)
