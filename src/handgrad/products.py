"""The matrix product on its own: `hg.matmul`."""

from __future__ import annotations

import numpy as np

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.dispatch import get_engine
from handgrad.errors import ArgumentError, EngineError, ShapeError
from handgrad.ops import matmul as matmul_op

PRECISIONS = ("float32", "bf16")


def matmul(a: Array, b: Array, out: Array | None = None, precision: str = "float32") -> Array:
    """A B over the last two axes, the others broadcast as in numpy.matmul.

    `precision="bf16"` rounds float32 operands to bfloat16 (8 bits of mantissa) on their way in and
    sums in float32; "float32" computes in the arrays' own type, float64 included. `out`, if given,
    is written and returned.

    Shapes: a (..., M, K) or (K,), b (..., K, N) or (K,), result (..., M, N).
    Raises ShapeError where these do not fit or out has another shape or type, ArgumentError for an
    unknown precision, EngineError where the CPU has no bfloat16 unit.
    Source: Transformer Layer notes, section 5.
    """
    if precision not in PRECISIONS:
        raise ArgumentError(f"matmul: precision is {precision!r}; allowed: {', '.join(PRECISIONS)}")
    matmul_op.validate(a, b)
    if precision == "bf16":
        _check_bf16(a, b)
    elif out is None or not _all_plain(a, b, out):
        c, _ = matmul_op.forward(a, b)
        return c if out is None else _written(c, out)
    from handgrad.kernels.matmul import product, product_bf16

    multiply = product_bf16 if precision == "bf16" else product
    if out is None:
        return multiply(a, b)
    return multiply(a, b, out) if _all_plain(a, b, out) else _written(multiply(a, b), out)


def _shape(a: Array, b: Array) -> tuple[int, ...]:
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])


def _all_plain(a: Array, b: Array, out: Array) -> bool:
    """Whether the kernel can write the product of these straight into `out`."""
    arrays = (a, b, out)
    return (
        kernels.native is not None
        and get_engine() != "reference"
        and all(type(x) is np.ndarray and x.ndim >= 2 and x.dtype == out.dtype for x in arrays)
        and out.dtype in (np.float32, np.float64)
        and out.flags.carray
        and not np.may_share_memory(a, out)
        and not np.may_share_memory(b, out)
        and out.shape == _shape(a, b)
    )


def _written(c: Array, out: Array) -> Array:
    if tuple(out.shape) != tuple(c.shape) or out.dtype != c.dtype:
        raise ShapeError(
            f"matmul: out has shape {tuple(out.shape)}, {out.dtype}; "
            f"allowed: {tuple(c.shape)}, {c.dtype}"
        )
    out[...] = c
    return out


def _check_bf16(a: Array, b: Array) -> None:
    """Raise unless these are two float32 matrices and there is a unit to multiply them."""
    unit = "none" if kernels.native is None else kernels.native.bf16_unit
    if unit == "none":
        raise EngineError(
            "matmul: precision='bf16' needs a CPU with avx512_bf16 or AMX and the x86-64-v4 "
            f"kernels; in use here: {kernels.instruction_set or 'no kernels'}"
        )
    for name, x in (("a", a), ("b", b)):
        if type(x) is not np.ndarray or x.dtype != np.float32 or x.ndim != 2:
            raise ArgumentError(
                f"matmul: {name} is {type(x).__name__} of {getattr(x, 'dtype', '?')} with shape "
                f"{tuple(x.shape)}; allowed with precision='bf16': float32 NumPy matrices"
            )
