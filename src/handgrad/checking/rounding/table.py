"""The rule of every function, by the names that NumPy and the array API have for it."""

from __future__ import annotations

from typing import Final

from handgrad.checking.rounding import arrays as a
from handgrad.checking.rounding import elementwise as e
from handgrad.checking.rounding.model import Rule
from handgrad.program.arranging import ORDERS, RESHAPING


def _named(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


#: The rule of every function, by the names that NumPy and the array API have for it.
RULES: Final[dict[str, Rule]] = {
    **_named(e.add, "add subtract"),
    **_named(
        a.multiply, "multiply matmul dot vdot inner outer tensordot vecdot convolve correlate"
    ),
    **_named(a.einsum, "einsum"),
    **_named(e.divide, "divide true_divide"),
    **_named(e.reciprocal, "reciprocal"),
    **_named(a.power, "power pow"),
    **_named(a.square, "square"),
    **_named(e.exact, "negative positive abs absolute fabs copy asarray ascontiguousarray"),
    **_named(e.square_root, "sqrt"),
    **_named(e.monotone(), "exp exp2 expm1 sinh tanh arctan atan arcsinh asinh cbrt erf expit"),
    **_named(e.monotone(0.0), "log log2 log10"),
    **_named(e.monotone(-1.0), "log1p"),
    **_named(e.log_add_exp, "logaddexp"),
    **_named(e.wave, "sin cos"),
    **_named(e.sign, "sign"),
    **_named(e.extremum, "maximum minimum fmax fmin"),
    **_named(e.clip, "clip"),
    **_named(e.where, "where"),
    **_named(e.compare, "equal not_equal less less_equal greater greater_equal"),
    **_named(e.logical, "logical_and logical_or logical_xor logical_not"),
    **_named(e.logical, "bitwise_and bitwise_or bitwise_xor bitwise_invert invert"),
    **_named(e.is_finite, "isfinite isinf isnan"),
    **_named(a.sum, "sum"),
    **_named(a.mean, "mean"),
    **_named(a.variance, "var"),
    **_named(a.deviation, "std"),
    **_named(a.norm, "norm"),
    **_named(a.cumulative, "cumsum cumulative_sum"),
    **_named(a.largest, "max amax"),
    **_named(a.smallest, "min amin"),
    **_named(a.position_of_largest, "argmax"),
    **dict.fromkeys((*ORDERS, *RESHAPING), a.move),
    **_named(a.move, "broadcast_to flip roll tile repeat take"),
    **_named(a.move, "take_along_axis concat concatenate stack vstack hstack split array_split"),
    **_named(a.move, "unstack diagonal diag triu tril"),
    **_named(a.pad, "pad"),
    **_named(a.like, "zeros_like ones_like empty_like full_like"),
    **_named(a.as_type, "astype"),
    **_named(a.of_certain, "any all count_nonzero"),
    **_named(a.of_values, "shape ndim size"),
}
