"""Element-wise arithmetic, comparisons, extremes and rounding: a record each."""

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.axes import Shape, boolean, broadcast
from handgrad.program.primitives.pointwise import (
    Gradients,
    between,
    bits,
    elementwise,
    nonzero,
    normal,
    positive,
    whole,
)
from handgrad.program.primitives.rules import (
    add_rule,
    divide_rule,
    multiply_rule,
    negative_rule,
    power_rule,
    subtract_rule,
)
from handgrad.program.primitives.table import (
    FUNCTIONS,
    Spelling,
    known,
    plain,
    refuse,
    with_tensors,
)

# Arithmetic.
elementwise(
    "add",
    np.add,
    lambda g, y, a, b: (g, g),
    shape=broadcast,
    text="+",
    precedence=5,
    rewrite=add_rule,
)
elementwise(
    "subtract",
    np.subtract,
    lambda g, y, a, b: (g, -g),
    shape=broadcast,
    text="-",
    precedence=5,
    rewrite=subtract_rule,
)
elementwise(
    "multiply",
    np.multiply,
    lambda g, y, a, b: (g * b, g * a),
    shape=broadcast,
    text="*",
    precedence=6,
    rewrite=multiply_rule,
)
elementwise(
    "divide",
    np.divide,
    lambda g, y, a, b: (g / b, -(g / b * y)),
    text="/",
    precedence=6,
    rewrite=divide_rule,
    draw=(normal, positive),
    aliases=(np.true_divide,),
)
elementwise(
    "negative",
    np.negative,
    lambda g, y, x: (-g,),
    shape=broadcast,
    text="-",
    precedence=7,
    rewrite=negative_rule,
)


def power_vjp(g: Node, y: Node, x: Node, p: Node) -> Gradients:
    """As PyTorch: x⁰ has slope 0 at 0 too, and 0ᵖ does not depend on p."""
    slope = p * x ** (p - 1)
    if p.op != "const":
        slope = build("where", build("equal", p, 0), 0.0, slope)
    return g * slope, g * (y * build("log", nonzero(x)))


elementwise(
    "power",
    np.power,
    power_vjp,
    shape=broadcast,
    text="**",
    precedence=8,
    rewrite=power_rule,
    draw=(positive, normal),
)
elementwise(
    "remainder",
    np.remainder,
    lambda g, y, a, b: (g, -(g * build("floor", a / b))),
    shape=broadcast,
    text="%",
    precedence=6,
    draw=(normal, positive),
    aliases=(np.mod,),
)
elementwise(
    "fmod",
    np.fmod,
    lambda g, y, a, b: (g, -(g * build("trunc", a / b))),
    shape=broadcast,
    torch=with_tensors("torch.fmod"),
    draw=(normal, positive),
)
elementwise(
    "floor_divide",
    np.floor_divide,
    None,
    shape=broadcast,
    text="//",
    precedence=6,
    draw=(normal, positive),
)

# Extremes. A tie is shared, as in PyTorch, but not with a constant: max(x, 0) has slope 0 at 0.
Test = Callable[[Node, Node], Node]
greater: Test = lambda a, b: build("greater", a, b)  # noqa: E731
less: Test = lambda a, b: build("less", a, b)  # noqa: E731
at_least: Test = lambda a, b: build("greater_equal", a, b)  # noqa: E731
at_most: Test = lambda a, b: build("less_equal", a, b)  # noqa: E731


def extreme_vjp(beats: Test) -> Callable[..., Gradients]:
    """The gradient of the larger or smaller of two."""

    def vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
        if plain(a) or plain(b):
            return tuple(
                build("where", beats(p, q), g, 0.0) if not plain(p) else None
                for p, q in ((a, b), (b, a))
            )
        half = build("where", build("equal", a, b), 0.5 * g, 0.0)
        return (
            build("where", beats(a, b), g, half),
            build("where", beats(b, a), g, half),
        )

    return vjp


def first_extreme_vjp(beats: Test, ties: Test) -> Callable[..., Gradients]:
    """The gradient where NaN loses; a tie is the first operand's, as in PyTorch."""

    def vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
        wins = build("logical_or", beats(a, b) if plain(b) else ties(a, b), build("isnan", b))
        return build("where", wins, g, 0.0), build("where", wins, 0.0, g)

    return vjp


def bounded(name: str, bound: str) -> Spelling:
    """A function of torch that takes no number, by clamp where one operand is a number."""

    def text(e: Any, n: Node) -> str | tuple[str, int]:
        for x, c in (n.args, n.args[::-1]):
            if plain(c) and not plain(x):
                return f"{e.arg(x, 9)}.clamp({bound}={e.arg(c)})"
        written = with_tensors(name)
        assert callable(written)
        return written(e, n)

    return text


elementwise(
    "maximum",
    np.maximum,
    extreme_vjp(greater),
    shape=broadcast,
    torch=bounded("torch.maximum", "min"),
)
elementwise(
    "minimum",
    np.minimum,
    extreme_vjp(less),
    shape=broadcast,
    torch=bounded("torch.minimum", "max"),
)
elementwise(
    "fmax",
    np.fmax,
    first_extreme_vjp(greater, at_least),
    shape=broadcast,
    torch=with_tensors("torch.fmax"),
)
elementwise(
    "fmin",
    np.fmin,
    first_extreme_vjp(less, at_most),
    shape=broadcast,
    torch=with_tensors("torch.fmin"),
)


def clip_vjp(g: Node, y: Node, x: Node, low: Node, high: Node) -> Gradients:
    """Slope 1 on the bounds too, as in PyTorch."""
    within = build("logical_and", at_least(x, low), at_most(x, high))
    below = build("logical_and", less(x, low), less(low, high))
    above = build("logical_or", greater(x, high), greater(low, high))
    return (
        build("where", within, g, 0.0),
        build("where", below, g, 0.0),
        build("where", above, g, 0.0),
    )


elementwise(
    "clip",
    lambda x, low, high: np.clip(x, low, high),
    clip_vjp,
    shape=broadcast,
    text="np.clip",
    torch="torch.clamp",
    draw=(normal, between(-0.9, -0.4), between(0.4, 0.9)),
)


@known(np.clip)
def clip(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None, **_: Any
) -> Node:
    """NumPy's clip; a bound may be missing."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is not None and high is not None:
        return build("clip", x, low, high)
    if low is not None:
        return build("maximum", x, low)
    return as_node(x) if high is None else build("minimum", x, high)


# Choice.
elementwise(
    "where",
    np.where,
    lambda g, y, c, a, b: (None, build("where", c, g, 0.0), build("where", c, 0.0, g)),
    shape=lambda c, a, b: (broadcast(c, a, b)[0], broadcast(a, b)[1]),
    draw=(bits, normal, normal),
)


# Signs.
def size_kind(x: Node) -> tuple[Shape, str]:
    """A size is real."""
    return x.shape, x.kind.replace("c", "f")


elementwise(
    "abs",
    np.absolute,
    lambda g, y, x: (g * (x / nonzero(y) if x.kind == "c" else build("sign", x)),),
    shape=size_kind,
    aliases=(np.fabs,),
)
elementwise(
    "heaviside",
    np.heaviside,
    lambda g, y, x, h: (None, build("where", build("equal", x, 0), g, 0.0)),
    torch=with_tensors("torch.heaviside"),
)
elementwise(
    "copysign",
    np.copysign,
    lambda g, y, a, b: (g * build("sign", a) * build("copysign", 1.0, b), None),
    torch=with_tensors("torch.copysign"),
)

# Steps, comparisons and logic have derivative 0.
for _name in ("sign", "floor", "ceil", "trunc", "rint"):
    _torch = "torch.round" if _name == "rint" else f"torch.{_name}"
    elementwise(_name, getattr(np, _name), None, shape=broadcast, torch=_torch)
FUNCTIONS[np.fix] = FUNCTIONS[np.trunc]

COMPARISONS = {
    "greater": ">",
    "less": "<",
    "greater_equal": ">=",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
}
for _name, _sign in COMPARISONS.items():
    elementwise(
        _name,
        getattr(np, _name),
        None,
        shape=boolean,
        text=_sign,
        precedence=3,
        draw=(normal, normal),
    )
for _name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
    _draw = (bits,) * (1 if _name == "logical_not" else 2)
    elementwise(_name, getattr(np, _name), None, shape=boolean, draw=_draw)
for _name in ("isnan", "isfinite", "isinf", "signbit"):
    elementwise(_name, getattr(np, _name), None, shape=boolean)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"):
    _draw = (whole,) * (1 if _name == "invert" else 2)
    _torch = f"torch.bitwise_{_name.removeprefix('bitwise_').replace('invert', 'not')}"
    elementwise(_name, getattr(np, _name), None, shape=broadcast, torch=_torch, draw=_draw)


@known(np.round, np.around)
def rounded(x: Any, decimals: int = 0) -> Node:
    """NumPy's round: to the nearest, half to even."""
    if not decimals:
        return build("rint", x)
    return build("rint", as_node(x) * 10.0**decimals) / 10.0**decimals


@known(np.divmod)
def divided(a: Any, b: Any) -> tuple[Node, Node]:
    """Quotient and remainder."""
    return build("floor_divide", a, b), build("remainder", a, b)


@known(np.modf)
def parted(x: Any) -> tuple[Node, Node]:
    """The part after the point and the whole part."""
    whole = build("trunc", x)
    return x - whole, whole


@known(np.isclose)
def close(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Node:
    """Nearness as NumPy has it, of finite numbers."""
    if equal_nan:
        refuse("np.isclose with equal_nan= is not known")
    return at_most(build("abs", as_node(a) - b), atol + rtol * build("abs", b))


@known(np.positive)
def itself(x: Any) -> Node:
    """The number itself."""
    return as_node(x)
