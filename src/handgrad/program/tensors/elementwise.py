"""Elementwise functions, products of matrices, and arithmetic with PyTorch's arguments."""

from __future__ import annotations

from typing import Any, Final

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import TENSOR_FUNCTIONS, special, times, torch_function, xp

_SAME: Final = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square", "sign"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan"),
    *("arcsinh", "arccosh", "arctanh", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite"),
    *("logical_not", "logical_and", "logical_or", "logical_xor", "maximum", "minimum"),
    *("fmax", "fmin", "logaddexp", "hypot", "deg2rad", "rad2deg", "matmul", "inner", "kron"),
    *("positive", "negative", "absolute", "float_power", "remainder", "outer", "vdot"),
    *("floor_divide", "sinc", "nan_to_num", "heaviside", "copysign", "round", "real", "imag"),
)
_OTHERWISE: Final = {
    "abs": "absolute",
    "neg": "negative",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "arctan2": "arctan2",
    "pow": "power",
    "true_divide": "divide",
    "mul": "multiply",
    "multiply": "multiply",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "less": "less",
    "greater": "greater",
    "not_equal": "not_equal",
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "dot",
    "ger": "outer",
    "bitwise_not": "logical_not",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "fix": "trunc",
}
#: Those of scipy.special: PyTorch's names, also after `torch.special.`
_SPECIAL: Final = {
    "sigmoid": "expit",
    "expit": "expit",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "erfcx": "erfcx",
    "lgamma": "gammaln",
    "gammaln": "gammaln",
    "digamma": "digamma",
    "logit": "logit",
    "xlogy": "xlogy",
    "xlog1py": "xlog1py",
    "entr": "entr",
    "ndtr": "ndtr",
    "ndtri": "ndtri",
    "log_ndtr": "log_ndtr",
    "i0": "i0",
    "i0e": "i0e",
    "psi": "digamma",
}
TENSOR_FUNCTIONS.update({name: getattr(xp, name) for name in _SAME})
TENSOR_FUNCTIONS.update({name: getattr(xp, own) for name, own in _OTHERWISE.items()})
TENSOR_FUNCTIONS.update({name: getattr(special, own) for name, own in _SPECIAL.items()})


@torch_function("add")
def added(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    return x + times(alpha, other)


@torch_function("sub", "subtract")
def subtracted(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    return x - times(alpha, other)


@torch_function("div", "divide")
def divided(x: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    quotient = xp.divide(x, other)
    if rounding_mode is None:
        return quotient
    return xp.floor(quotient) if rounding_mode == "floor" else xp.trunc(quotient)


@torch_function("fmod")
def fmod(x: Any, other: Any) -> Any:
    return x - xp.trunc(xp.divide(x, other)) * other


@torch_function("frac")
def frac(x: Any) -> Any:
    return x - xp.trunc(x)


@torch_function("rsqrt")
def rsqrt(x: Any) -> Any:
    return 1.0 / xp.sqrt(x)


@torch_function("reciprocal")
def reciprocal(x: Any) -> Any:
    return 1.0 / x


@torch_function("clamp", "clip")
def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = xp.maximum(x, min)
    return x if max is None else xp.minimum(x, max)


@torch_function()
def clamp_min(x: Any, min: Any) -> Any:
    return xp.maximum(x, min)


@torch_function()
def clamp_max(x: Any, max: Any) -> Any:
    return xp.minimum(x, max)


@torch_function()
def lerp(x: Any, end: Any, weight: Any) -> Any:
    return x + weight * (end - x)


@torch_function()
def addcmul(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * a * b


@torch_function()
def addcdiv(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * a / b


@torch_function("addmm", "baddbmm", "addmv")
def addmm(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return times(beta, x) + times(alpha, a @ b)


@torch_function()
def einsum(equation: str, *operands: Any) -> Any:
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    return xp.einsum(equation, *operands)


@torch_function()
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    return xp.tensordot(a, b, axes=dims)


@torch_function("cross", "linalg.cross")
def cross(x: Any, other: Any, dim: int = -1) -> Any:
    return xp.cross(x, other, axis=dim)


@torch_function("chain_matmul", "linalg.multi_dot")
def chain_matmul(*matrices: Any) -> Any:
    if len(matrices) == 1:
        matrices = tuple(matrices[0])
    return xp.linalg.multi_dot(list(matrices))


@torch_function(
    *("bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randn"),
    *("randn_like", "randperm"),
)
def random(*_: Any, **__: Any) -> Any:
    refuse("random numbers are drawn, others in each run; give what is drawn as an argument")
