"""Elementwise functions, products of matrices, and arithmetic with PyTorch's arguments."""

from __future__ import annotations

from typing import Any, Final

from handgrad.program.tensors.table import (
    enter,
    special,
    times,
    torch_function,
    torch_refused,
    xp,
)

_SAME: Final = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square", "sign"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan"),
    *("arcsinh", "arccosh", "arctanh", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite"),
    *("logical_not", "logical_and", "logical_or", "logical_xor", "maximum", "minimum"),
    *(
        "fmax",
        "fmin",
        "logaddexp",
        "logaddexp2",
        "hypot",
        "deg2rad",
        "rad2deg",
        "matmul",
        "inner",
        "kron",
    ),
    *("positive", "negative", "absolute", "float_power", "remainder", "outer", "vdot"),
    *("floor_divide", "sinc", "heaviside", "copysign", "real", "imag"),
    *("isclose", "allclose", "signbit", "ldexp", "conj", "angle", "vander"),
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
    "bitwise_xor": "logical_xor",
    "less_equal": "less_equal",
    "greater_equal": "greater_equal",
    "sgn": "sign",
    "conj_physical": "conj",
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
    "xlogy": "xlogy",
    "xlog1py": "xlog1py",
    "entr": "entr",
    "ndtr": "ndtr",
    "ndtri": "ndtri",
    "log_ndtr": "log_ndtr",
    "i0": "i0",
    "i0e": "i0e",
    "psi": "digamma",
    "mvlgamma": "multigammaln",
    "multigammaln": "multigammaln",
}
for _name, _own in {**{name: name for name in _SAME}, **_OTHERWISE}.items():
    enter(_name, getattr(xp, _own))
for _name, _own in _SPECIAL.items():
    enter(_name, getattr(special, _own))


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


@torch_function("round")
def rounded(x: Any, *, decimals: int = 0) -> Any:
    return xp.round(x, decimals)


@torch_function("logit")
def logit(x: Any, eps: Any = None) -> Any:
    return special.logit(x if eps is None else clamp(x, eps, 1 - eps))


@torch_function("nan_to_num")
def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@torch_function("polygamma")
def polygamma(n: int, x: Any) -> Any:
    return special.polygamma(n, x)


@torch_function("rsub")
def rsub(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    return other - times(alpha, x)


@torch_function("fmod")
def fmod(x: Any, other: Any) -> Any:
    return x - xp.trunc(xp.divide(x, other)) * other


@torch_function("isposinf")
def isposinf(x: Any) -> Any:
    return x == xp.inf


@torch_function("isneginf")
def isneginf(x: Any) -> Any:
    return x == -xp.inf


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
    """Between bounds, of which one may be missing; on a bound the gradient is that of x."""
    if min is not None and max is not None:
        return xp.clip(x, min, max)
    return clamp_max(x, max) if min is None else clamp_min(x, min)


@torch_function()
def clamp_min(x: Any, min: Any) -> Any:
    return xp.where(x < min, min, x)


@torch_function()
def clamp_max(x: Any, max: Any) -> Any:
    return xp.where(x > max, max, x)


@torch_function()
def lerp(x: Any, end: Any, weight: Any) -> Any:
    return x + weight * (end - x)


@torch_function()
def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    return x + times(value, tensor1 * tensor2)


@torch_function()
def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    return x + times(value, tensor1 / tensor2)


@torch_function("addmm")
def addmm(x: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return times(beta, x) + times(alpha, mat1 @ mat2)


@torch_function("baddbmm")
def baddbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return addmm(x, batch1, batch2, beta=beta, alpha=alpha)


@torch_function("addbmm")
def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return times(beta, x) + times(alpha, xp.sum(batch1 @ batch2, axis=0))


@torch_function("addmv")
def addmv(x: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return addmm(x, mat, vec, beta=beta, alpha=alpha)


@torch_function("addr")
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return times(beta, x) + times(alpha, xp.outer(vec1, vec2))


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


torch_refused(
    "random numbers are drawn, others in each run; give what is drawn as an argument",
    *("bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randn"),
    *("randn_like", "randperm", "randint_like", "poisson", "rrelu", "gumbel_softmax"),
    *("uniform_", "normal_", "bernoulli_", "exponential_", "random_"),
)
