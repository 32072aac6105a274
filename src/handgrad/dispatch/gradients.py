"""The arguments of a backward beside its cache: dy, and the buffers of gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad import kernels
from handgrad.dispatch.values import as_array, library, shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.kernels.spec import CONTIGUOUS

#: True for an array that a kernel of this layout can read as it is.
_is_readable: Final[Any] = getattr(kernels.native, "is_readable", None)
#: `overlaps(out, others, same)`: whether arrays to be written may share memory with others.
_overlaps: Final[Any] = getattr(kernels.native, "overlaps", None)


class _Skip:
    """In `backward(..., out=(SKIP, dweight))`: this gradient is not wanted, and comes back None."""

    def __repr__(self) -> str:
        return "SKIP"

    def __reduce__(self) -> str:
        return "SKIP"


SKIP: Final = _Skip()


def readable(value: Any, layout: int = CONTIGUOUS) -> Any:
    """Arrays, in nested tuples too, as the kernel reads them, copied if need be; others as is."""
    if type(value) is tuple:
        return tuple(readable(each, layout) for each in value)
    if type(value) is not np.ndarray or (value.flags.c_contiguous and value.flags.aligned):
        return value
    if layout != CONTIGUOUS and _is_readable(value, layout):
        return value
    kernels.invalidate_capture("an array was copied for a kernel")
    return np.require(value, requirements=("C", "A"))


def _words(like: Any) -> str:
    shape, dtype = like
    return f"{dtype} and {tuple(shape)}"


def as_gradient(op: str, dy: Any, like: Any, of: str, optional: bool = False) -> Any:
    """dy as an array, nested as the outputs.

    Raises ArgumentError where it is no array, or of another library than `of`; ShapeError unless it
    is like the outputs. None may stand for the gradient of an output beside the first.
    """
    if type(like) is tuple:
        if dy is None and optional:
            return None
        array = as_array(dy)
        if array is None:
            raise ArgumentError(f"{op}: dy is {shown(dy)}; allowed: {_words(like)}, as y")
        if library(array) not in (of, "numpy" if of == "jax.numpy" else of):
            raise ArgumentError(
                f"{op}: dy is an array of {library(array)}; allowed: one of {of}, as y"
            )
        shape, dtype = like
        if tuple(array.shape) != tuple(shape) or array.dtype != dtype:
            raise ShapeError(
                f"{op}: dy is of {array.dtype} and has shape {tuple(array.shape)}; "
                f"allowed: {_words(like)}, as y"
            )
        return array
    if not isinstance(dy, tuple | list) or len(dy) != len(like):
        raise ShapeError(
            f"{op}: dy is {shown(dy)}; allowed: {len(like)} gradients in a tuple, nested as the "
            f"outputs"
        )
    return tuple(
        as_gradient(op, given, output, of, optional or number > 0)
        for number, (given, output) in enumerate(zip(dy, like, strict=True))
    )


def as_residual(residual: Any, y: Any) -> Any:
    """`residual` as it can be added to y, or None as it is.

    Raises ArgumentError where it is no array, ShapeError unless it is like y.
    """
    if residual is None:
        return None
    array = as_array(residual)
    if array is None or not hasattr(y, "shape") or library(array) != library(y):
        wanted = "an array like the output" if hasattr(y, "shape") else "None, with several outputs"
        raise ArgumentError(f"residual is {shown(residual)}; allowed: {wanted}")
    if array.shape != y.shape or array.dtype != y.dtype:
        raise ShapeError(
            f"residual is of {array.dtype} and has shape {tuple(array.shape)}; "
            f"allowed: {y.dtype} and {tuple(y.shape)}, as what it is added to"
        )
    return readable(array, False)


def check_out(op: str, out: Any, count: int) -> None:
    """Raise ArgumentError unless `out` has an array, None or SKIP for each of `count` gradients."""
    if not isinstance(out, tuple | list) or len(out) != count:
        found = f"has {len(out)} entries" if isinstance(out, tuple | list) else f"is {shown(out)}"
        raise ArgumentError(
            f"{op}: out {found}; allowed: a tuple of {count}, with an array, None or SKIP for "
            f"each gradient"
        )
    for entry in out:
        plain = type(entry) is np.ndarray or entry is None or entry is SKIP
        if not plain and as_array(entry) is None:
            raise ArgumentError(f"{op}: out has {shown(entry)}; allowed: an array, None or SKIP")


def check_apart(op: str, out: Any, kept: Any, others: Any, same: bool) -> None:
    """Raise ArgumentError where an array of `out` shares memory with another, or with the rest.

    With `same`, it may be the whole of the first array that was kept.
    """
    if _overlaps is not None and (
        _overlaps(out, kept[:1], same) or _overlaps(out, (kept[1:], others), False)
    ):
        raise ArgumentError(
            f"{op}: out has an array that overlaps in memory with an input, dy or another one of "
            f"out; allowed: arrays apart from all others"
        )


def check_buffer(wanted: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise ArgumentError unless `wanted` is an output buffer for a gradient of this kind."""
    if type(wanted) is not np.ndarray:
        raise ArgumentError(f"out= has {shown(wanted)}; allowed: an array of NumPy, None or SKIP")
    if wanted.shape != shape or wanted.dtype != dtype or not wanted.flags.carray:
        kind = "" if wanted.flags.carray else ", strided, unaligned or read-only"
        raise ArgumentError(
            f"out= has an array of shape {wanted.shape}, {wanted.dtype}{kind}; "
            f"allowed: writeable, C-contiguous, shape {shape}, {dtype}"
        )


def written(gradients: Any, out: Any) -> Any:
    """The reference's gradients, in the caller's output buffers."""
    if out is None:
        return gradients
    several = isinstance(gradients, tuple)
    found = gradients if several else (gradients,)
    written: list[Any] = []
    for gradient, wanted in zip(found, out, strict=True):
        if wanted is SKIP:
            written.append(None)
        elif wanted is None or gradient is None:
            written.append(gradient)
        else:
            if isinstance(gradient, np.ndarray | np.generic):
                check_buffer(wanted, gradient.shape, gradient.dtype)
            elif tuple(getattr(wanted, "shape", ())) != tuple(gradient.shape):
                raise ArgumentError(
                    f"out= has {shown(wanted)}; allowed: an array of shape {tuple(gradient.shape)}"
                )
            wanted[...] = gradient
            written.append(wanted)
    return tuple(written) if several else written[0]


def added(residual: Any, y: Any) -> Any:
    """residual + y, or y where the residual is None, for what does not add it as it writes.

    Raises as `as_residual`.
    """
    if residual is None or y is None:
        return y
    kernels.invalidate_capture("a residual was added by NumPy")
    return as_residual(residual, y) + y


def added_to_first(residual: Any, gradients: Any) -> Any:
    """The gradients with the residual in the first of them."""
    if not isinstance(gradients, tuple):
        return added(residual, gradients)
    return added(residual, gradients[0]), *gradients[1:]
