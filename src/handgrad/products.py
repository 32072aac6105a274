"""The matrix product on its own: `hg.matmul`."""

from __future__ import annotations

import numpy as np

from handgrad import kernels
from handgrad.arrays import Array
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
    if precision == "bf16":
        c = _bf16(a, b)
    else:
        c, _ = matmul_op.forward(a, b)
    if out is None:
        return c
    if tuple(out.shape) != tuple(c.shape) or out.dtype != c.dtype:
        raise ShapeError(
            f"matmul: out has shape {tuple(out.shape)}, {out.dtype}; "
            f"allowed: {tuple(c.shape)}, {c.dtype}"
        )
    out[...] = c
    return out


def _bf16(a: Array, b: Array) -> Array:
    """One product of two float32 matrices on the bfloat16 unit."""
    unit = "none" if kernels.native is None else kernels.native.bf16_unit
    if unit == "none":
        raise EngineError(
            "matmul: precision='bf16' needs a CPU with avx512_bf16 or AMX and the x86-64-v4 "
            f"kernels; in use here: {kernels.instruction_set or 'no kernels'}"
        )
    matmul_op.validate(a, b)
    for name, x in (("a", a), ("b", b)):
        if type(x) is not np.ndarray or x.dtype != np.float32 or x.ndim != 2:
            raise ArgumentError(
                f"matmul: {name} is {type(x).__name__} of {getattr(x, 'dtype', '?')} with shape "
                f"{getattr(x, 'shape', '?')}; allowed with precision='bf16': float32 NumPy matrices"
            )
    from handgrad.kernels.matmul import product_bf16

    return product_bf16(a, b)
