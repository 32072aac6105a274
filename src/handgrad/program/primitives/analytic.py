"""Element-wise exponentials, logarithms, roots, circular and hyperbolic functions: a record each.

A gradient is written with the result where that is stable at extremes: y (1 − y), 1 − y².
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import broadcast
from handgrad.program.primitives.pointwise import (
    Gradients,
    between,
    cast,
    elementwise,
    inside,
    nonzero,
    positive,
)
from handgrad.program.primitives.rules import log1p_rule, log_rule, logaddexp_rule
from handgrad.program.primitives.table import helper, known, with_tensors

Array = NDArray[Any]
LOG_2, LOG_10, PI = float(np.log(2)), float(np.log(10)), float(np.pi)

# Exponentials and logarithms.
elementwise("exp", np.exp, lambda g, y, x: (g * y,))
elementwise("exp2", np.exp2, lambda g, y, x: (g * y * LOG_2,))
elementwise("expm1", np.expm1, lambda g, y, x: (g * (y + 1),))
elementwise("log", np.log, lambda g, y, x: (g / x,), rewrite=log_rule, draw=positive)
elementwise("log2", np.log2, lambda g, y, x: (g / (x * LOG_2),), draw=positive)
elementwise("log10", np.log10, lambda g, y, x: (g / (x * LOG_10),), draw=positive)
elementwise("log1p", np.log1p, lambda g, y, x: (g / (1 + x),), rewrite=log1p_rule, draw=inside)


def finite_below(y: Node) -> Node:
    """A logarithm of a sum with 0 for log 0: then its terms exp(a − y) are 0 and not NaN."""
    return build("where", build("equal", y, -np.inf), 0.0, y)


elementwise(
    "logaddexp",
    np.logaddexp,
    lambda g, y, a, b: tuple(g * build("exp", x - finite_below(y)) for x in (a, b)),
    rewrite=logaddexp_rule,
    torch=with_tensors("torch.logaddexp"),
)
elementwise(
    "logaddexp2",
    np.logaddexp2,
    lambda g, y, a, b: tuple(g * build("exp2", x - finite_below(y)) for x in (a, b)),
    torch=with_tensors("torch.logaddexp2"),
)


@helper()
def sigmoid(x: Any) -> Any:
    """The logistic function, by an exponential that can't overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def softplus(x: Any) -> Any:
    """The logarithm of 1 + exp(x)."""
    return np.logaddexp(0, x)


elementwise(
    "sigmoid",
    sigmoid,
    lambda g, y, x: (g * y * (1 - y),),
    text=lambda e, n: e.call("sigmoid", n.args),
    torch="torch.sigmoid",
    jax="jax.nn.sigmoid",
)
elementwise(
    "softplus",
    softplus,
    lambda g, y, x: (g * build("sigmoid", x),),
    text=lambda e, n: f"np.logaddexp(0, {e.arg(n.args[0])})",
    torch=lambda e, n: f"-torch.nn.functional.logsigmoid(-{e.arg(n.args[0], 7)})",
    jax="jax.nn.softplus",
)

# Powers and roots.


def root(x: Any, flat: bool = False) -> Any:
    """The square root; a flat one, of a length, has slope 0 at 0."""
    return np.sqrt(x)


def root_vjp(g: Node, y: Node, x: Node, flat: bool = False) -> Gradients:
    """Half of 1/y; where that is flat, it is 0 at 0."""
    flat = flat or world().ties == "flat"
    return (0.5 * g / (build("where", build("equal", y, 0), np.inf, y) if flat else y),)


elementwise(
    "sqrt",
    root,
    root_vjp,
    draw=positive,
    cases=({}, {"flat": True}),
    aliases=(np.sqrt,),
)
elementwise(
    "cbrt",
    np.cbrt,
    lambda g, y, x: (g / (3 * y * y),),
    torch=lambda e, n: f"{e.arg(n.args[0], 9)}.sign() * {e.arg(n.args[0], 9)}.abs() ** (1 / 3)",
)
elementwise("square", np.square, lambda g, y, x: (g * (2 * x),), shape=broadcast)
elementwise("reciprocal", np.reciprocal, lambda g, y, x: (-(g * y * y),), draw=positive)


@known(np.reciprocal)
def reciprocal(x: Any, dtype: Any = None) -> Node:
    """1 / x: the quotient, so that its rules hold; of integers NumPy's whole quotient."""
    node = cast(as_node(x), dtype)
    return 1 / node if node.kind == "f" else build("reciprocal", node)


@known(np.float_power)
def float_power(x: Any, p: Any) -> Node:
    """A power of floats."""
    return cast(as_node(x), float) ** as_node(p)


@known(np.ldexp)
def ldexp(x: Any, exponent: Any) -> Node:
    """x · 2ⁿ."""
    return as_node(x) * build("exp2", exponent)


def slope_of_hypot(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    """A length has slope 0 at 0."""
    share = g / nonzero(y)
    return share * a, share * b


elementwise("hypot", np.hypot, slope_of_hypot, draw=positive, torch=with_tensors("torch.hypot"))

# Circular functions.
elementwise("sin", np.sin, lambda g, y, x: (g * build("cos", x),))
elementwise("cos", np.cos, lambda g, y, x: (-(g * build("sin", x)),))
elementwise("tan", np.tan, lambda g, y, x: (g * (1 + y * y),), draw=inside)
elementwise("arcsin", np.arcsin, lambda g, y, x: (g / build("sqrt", 1 - x * x),), draw=inside)
elementwise("arccos", np.arccos, lambda g, y, x: (-(g / build("sqrt", 1 - x * x)),), draw=inside)
elementwise("arctan", np.arctan, lambda g, y, x: (g / (1 + x * x),))


def arctan2_vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    """The angle of (b, a); as in PyTorch it has slope 0 at (0, 0)."""
    share = g / nonzero(a * a + b * b)
    return share * b, -(share * a)


elementwise("arctan2", np.arctan2, arctan2_vjp, torch=with_tensors("torch.atan2"))
elementwise(
    "degrees",
    np.degrees,
    lambda g, y, x: (g * (180 / PI),),
    torch="torch.rad2deg",
    aliases=(np.rad2deg,),
)
elementwise(
    "radians",
    np.radians,
    lambda g, y, x: (g * (PI / 180),),
    torch="torch.deg2rad",
    aliases=(np.deg2rad,),
)
elementwise(
    "sinc",
    np.sinc,
    lambda g, y, x: (
        g * build("where", build("equal", x, 0), 0.0, (build("cos", PI * x) - y) / nonzero(x)),
    ),
)

# Hyperbolic functions.
elementwise("sinh", np.sinh, lambda g, y, x: (g * build("cosh", x),))
elementwise("cosh", np.cosh, lambda g, y, x: (g * build("sinh", x),))
elementwise("tanh", np.tanh, lambda g, y, x: (g * (1 - y * y),))
elementwise("arcsinh", np.arcsinh, lambda g, y, x: (g / build("sqrt", x * x + 1),))
elementwise(
    "arccosh",
    np.arccosh,
    lambda g, y, x: (g / build("sqrt", x * x - 1),),
    draw=between(1.5, 3),
)
elementwise("arctanh", np.arctanh, lambda g, y, x: (g / (1 - x * x),), draw=inside)


# Numbers that are none.
def numbers(e: Any, n: Node) -> str:
    """The keywords of nan_to_num that are not NumPy's own."""
    given = (f", {k}={v!r}" for k, v in n.attrs.items() if v is not None and (k, v) != ("nan", 0.0))
    return f"nan_to_num({e.arg(n.args[0])}{''.join(given)})"


elementwise(
    "nan_to_num",
    lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, True, nan, posinf, neginf),
    lambda g, y, x, **_: (build("where", build("isfinite", x), g, 0.0),),
    shape=broadcast,
    text=lambda e, n: f"np.{numbers(e, n)}",
    torch=lambda e, n: f"torch.{numbers(e, n)}",
    jax=lambda e, n: f"jnp.{numbers(e, n)}",
    cases=({}, {"nan": 1.0, "posinf": 2.0, "neginf": -2.0}),
)


@known(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Node:
    """NumPy's nan_to_num, with numbers in the place of NaN and infinities."""
    return build("nan_to_num", x, nan=nan, posinf=posinf, neginf=neginf)
