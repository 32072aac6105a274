"""C's column of the primitive records: how each is spelled for one element, and helpers for it.

`real` and the functions of <math.h> stand in helpers as in double precision; `typed` makes them
those of the arrays' type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from handgrad.program.node import Node
from handgrad.program.primitives.table import HELPERS

Spelling: TypeAlias = str | Callable[[Any, Node], str | tuple[str, int]]

_CALLED: Final = (
    *("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh"),
    *("sinh", "cosh", "cbrt", "floor", "ceil", "trunc", "rint", "hypot", "copysign", "fmod"),
    *("fmax", "fmin", "erf", "erfc"),
)
_OTHERWISE: Final = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "abs": "fabs",
    "gammaln": "lgamma",
    "power": "pow",
}
MATH: Final = frozenset({*_CALLED, *_OTHERWISE.values()})
"""The functions of <math.h> that are called, which have an `f` behind them for floats."""

_WORDS: Final = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof bool true false nullptr alignas alignof constexpr static_assert
thread_local _Bool _Complex _Imaginary _Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert
_Thread_local main forward backward linux unix i386
ptrdiff_t size_t max_align_t wchar_t NULL offsetof NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL HUGE
OVERFLOW UNDERFLOW DOMAIN SING PLOSS TLOSS MAXFLOAT FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL
FP_NORMAL FP_ILOGB0 FP_ILOGBNAN MATH_ERRNO MATH_ERREXCEPT math_errhandling isnan isinf isfinite
isnormal signbit fpclassify isgreater isless isunordered M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI
M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2
"""
KEYWORDS: Final = frozenset(_WORDS.split())
"""Words of the language and of its headers, and macros that compilers have."""


def _call(name: str) -> Spelling:
    def text(e: Any, n: Node) -> str:
        return f"{e.function(name)}({', '.join(e.operand(n, a) for a in n.args)})"

    return text


def _helper(e: Any, n: Node) -> str:
    name = e.helper(n.op)
    return f"{name}({', '.join(e.operand(n, a) for a in n.args)})"


def _square(e: Any, n: Node) -> tuple[str, int]:
    x = e.operand(n, n.args[0], 6)
    return f"{x} * {x}", 6


def _power(e: Any, n: Node) -> str | tuple[str, int]:
    x, p = n.args
    is_short = id(x) in e.variables or not x.args
    if is_short and p.op == "const" and p.attrs["value"] == 2:
        return _square(e, n)
    return f"{e.function('pow')}({e.operand(n, x)}, {e.operand(n, p)})"


def _where(e: Any, n: Node) -> tuple[str, int]:
    condition = e.arg(n.args[0], 2)
    one, other = (e.operand(n, a, 1) for a in n.args[1:])
    return f"{condition} ? {one} : {other}", 1


def _clip(e: Any, n: Node) -> str:
    x, low, high = (e.operand(n, a) for a in n.args)
    return f"{e.helper('minimum')}({e.helper('maximum')}({x}, {low}), {high})"


def _scaled(factor: str) -> Spelling:
    def text(e: Any, n: Node) -> tuple[str, int]:
        return f"{e.operand(n, n.args[0], 5)} * {e.literal(factor)}", 6

    return text


def _sign(e: Any, n: Node) -> str:
    return f"{e.helper('sign')}({e.operand(n, n.args[0])})"


def _cast(e: Any, n: Node) -> tuple[str, int]:
    return e.cast(n.args[0], n.kind)


SPELLINGS: Final[dict[str, Spelling]] = {
    **{name: _call(name) for name in _CALLED},
    **{name: _call(own) for name, own in _OTHERWISE.items()},
    **dict.fromkeys(("maximum", "minimum", "sigmoid", "softplus", "logaddexp"), _helper),
    "sign": _sign,
    "power": _power,
    "square": _square,
    "reciprocal": lambda e, n: (f"{e.literal('1.0')} / {e.operand(n, n.args[0], 6)}", 6),
    "where": _where,
    "clip": _clip,
    "degrees": _scaled(repr(180 / 3.141592653589793)),
    "radians": _scaled(repr(3.141592653589793 / 180)),
    "logical_and": lambda e, n: (f"{e.arg(n.args[0], 3)} && {e.arg(n.args[1], 3)}", 2),
    "logical_or": lambda e, n: (f"{e.arg(n.args[0], 3)} || {e.arg(n.args[1], 3)}", 2),
    "logical_not": lambda e, n: (f"!{e.arg(n.args[0], 8)}", 7),
    "isnan": lambda e, n: f"isnan({e.operand(n, n.args[0])})",
    "isinf": lambda e, n: f"isinf({e.operand(n, n.args[0])})",
    "isfinite": lambda e, n: f"isfinite({e.operand(n, n.args[0])})",
    "astype": _cast,
    "like": _cast,
}
"""Functions of one element of each operand; infix signs are those of the records."""

#: Infix signs that mean in C what they do in Python, of the same precedence.
SIGNS: Final = frozenset({"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="})

HELPERS.setdefault("maximum", {})["c"] = """static real maximum(real a, real b)
{
    return a > b || a != a ? a : b;
}
"""
HELPERS.setdefault("minimum", {})["c"] = """static real minimum(real a, real b)
{
    return a < b || a != a ? a : b;
}
"""
HELPERS.setdefault("sign", {})["c"] = """static real sign(real x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}
"""
HELPERS.setdefault("sigmoid", {})["c"] = """static real sigmoid(real x)
{
    const real e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}
"""
HELPERS.setdefault("softplus", {})["c"] = """static real softplus(real x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}
"""
HELPERS.setdefault("logaddexp", {})["c"] = """static real logaddexp(real a, real b)
{
    return a == b ? a + log(2) : (a > b ? a : b) + log1p(exp(-fabs(a - b)));
}
"""


def typed(source: str, real: str) -> str:
    """A helper for a type of numbers."""
    if real == "float":
        source = re.sub(rf"\b({'|'.join(MATH)})\(", r"\1f(", source)
    return re.sub(r"\breal\b", real, source)
