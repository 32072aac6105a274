"""Element-wise arithmetic, comparisons, logic and rounding: a record each."""

from typing import Any

import numpy as np

from handgrad.program.arithmetic import COMPARISONS
from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.axes import boolean, broadcast
from handgrad.program.primitives.pointwise import (
    Gradients,
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
    known,
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

# Signs.
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

for _sign in COMPARISONS:
    elementwise(
        _sign.name,
        getattr(np, _sign.name),
        None,
        shape=boolean,
        text=_sign.text,
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
    return build("less_equal", build("abs", as_node(a) - b), atol + rtol * build("abs", b))


@known(np.positive)
def itself(x: Any) -> Node:
    """The number itself."""
    return as_node(x)
