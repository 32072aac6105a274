"""The matrix product on its own: `hg.matmul`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad import dispatch, kernels
from handgrad.arrays import Array
from handgrad.dispatch.signature import FLOATS, NONE, TEXT, settled
from handgrad.dispatch.values import as_array, check_one_library, shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.ops import matmul as matmul_op

#: Type codes of two operands that go to the op as they are.
_PLAIN: Final = ("ff", "dd")


def matmul(a: Array, b: Array, out: Array | None = None, precision: str | None = None) -> Array:
    """A B over the last two axes, the others broadcast as in numpy.matmul.

    `precision="bf16"` rounds float32 operands to bfloat16 (8 bits of mantissa) on their way in and
    sums in float32; "float32" computes in the arrays' own type, float64 included; without it the
    precision is that of `hg.get_precision()`. `out`, if given, is written and returned.

    Shapes: a (..., M, K) or (K,), b (..., K, N) or (K,), result (..., M, N).
    Raises ShapeError where these do not fit or out has another shape or type, ArgumentError for an
    unknown precision, EngineError where the CPU has no bfloat16 unit.
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5.
    """
    a, b = _operands(a, b)
    matmul_op.validate(a, b)
    if out is not None and not hasattr(as_array(out), "shape"):
        raise ArgumentError(f"matmul: out is {shown(out)}; allowed: an array, or None")
    if precision is not None:
        settled("matmul", "precision", precision, TEXT | NONE)
        dispatch.check_precision(precision, "matmul: precision")
        if precision == "bf16":
            _check_float32(a, b)
        if precision != dispatch.get_precision():
            with dispatch.precision(precision):
                return matmul(a, b, out)
    if out is None or not _all_plain(a, b, out):
        c, _ = matmul_op.forward(a, b)
        return c if out is None else _written(c, out)
    from handgrad.kernels.matmul import product

    return product(a, b, out)


def _operands(a: Array, b: Array) -> tuple[Array, Array]:
    """Both as arrays of floats of one library; ArgumentError where they are none."""
    if type(a) is np.ndarray and type(b) is np.ndarray and a.dtype.char + b.dtype.char in _PLAIN:
        return a, b
    a, b = settled("matmul", "a", a, FLOATS), settled("matmul", "b", b, FLOATS)
    check_one_library("matmul", {"a": a, "b": b})
    return a, b


def _shape(a: Array, b: Array) -> tuple[int, ...]:
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])


def _all_plain(a: Array, b: Array, out: Array) -> bool:
    """Return whether the kernel can write the product of these straight into `out`."""
    arrays = (a, b, out)
    return (
        kernels.native is not None
        and dispatch.get_engine() != "reference"
        and all(type(x) is np.ndarray and x.ndim >= 2 and x.dtype == out.dtype for x in arrays)
        and all(x.flags.aligned for x in arrays)
        and out.dtype in (np.float32, np.float64)
        and out.flags.carray
        and not np.may_share_memory(a, out)
        and not np.may_share_memory(b, out)
        and out.shape == _shape(a, b)
    )


def _written(c: Array, out: Array) -> Array:
    check_one_library("matmul", {"the product": c, "out": out})
    if tuple(out.shape) != tuple(c.shape) or out.dtype != c.dtype:
        raise ShapeError(
            f"matmul: out has shape {tuple(out.shape)}, {out.dtype}; "
            f"allowed: {tuple(c.shape)}, {c.dtype}"
        )
    numpys = isinstance(out, np.ndarray | np.generic)
    if numpys and (type(out) is not np.ndarray or not out.flags.writeable):
        raise ArgumentError(
            f"matmul: out is {shown(out)}, read-only or of a class of its own; "
            f"allowed: a plain array that can be written to"
        )
    out[...] = c
    return out


def _check_float32(a: Array, b: Array) -> None:
    """Raise unless these are arrays whose product can be had in bfloat16."""
    for name, x in (("a", a), ("b", b)):
        if type(x) is not np.ndarray or x.dtype != np.float32:
            raise ArgumentError(
                f"matmul: {name} is {type(x).__name__} of {getattr(x, 'dtype', '?')}; "
                f"allowed with precision='bf16': NumPy arrays of float32"
            )
