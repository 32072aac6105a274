"""Where pieces meet: extremes, clipping, choices and sizes, with their slopes at ties.

As in PyTorch a tie of two arrays is shared, and max(x, 0) has slope 0 at 0. Where a forward writes
a smooth function by pieces, another convention may be right; the trace says so by `ties`: "half"
shares every tie, "right" takes the slope on the right.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, number, world
from handgrad.program.primitives.axes import Shape, broadcast
from handgrad.program.primitives.pointwise import (
    Gradients,
    between,
    bits,
    elementwise,
    nonzero,
    normal,
)
from handgrad.program.primitives.rules import guarded_sum, where_rule
from handgrad.program.primitives.table import Spelling, known, plain, with_tensors

Test = Callable[[Node, Node], Node]
greater: Test = lambda a, b: build("greater", a, b)  # noqa: E731
less: Test = lambda a, b: build("less", a, b)  # noqa: E731
at_least: Test = lambda a, b: build("greater_equal", a, b)  # noqa: E731
at_most: Test = lambda a, b: build("less_equal", a, b)  # noqa: E731


def extreme_vjp(beats: Test, ties: Test) -> Callable[..., Gradients]:
    """The gradient of the larger or smaller of two."""

    def vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
        convention = world().ties
        constant = plain(a) or plain(b)
        if convention == "half" or (convention == "first" and not constant):
            half = build("where", build("equal", a, b), 0.5 * g, 0.0)
            return build("where", beats(a, b), g, half), build("where", beats(b, a), g, half)
        wins = beats if convention == "first" else ties
        return build("where", wins(a, b), g, 0.0), build("where", wins(b, a), g, 0.0)

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
            if e.is_number(c) and not e.is_number(x):
                return f"{e.arg(x, 8)}.clamp({bound}={e.arg(c)})"
        written = with_tensors(name)
        assert callable(written)
        return written(e, n)

    return text


elementwise(
    "maximum",
    np.maximum,
    extreme_vjp(greater, at_least),
    shape=broadcast,
    torch=bounded("torch.maximum", "min"),
)
elementwise(
    "minimum",
    np.minimum,
    extreme_vjp(less, at_most),
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


def clamped(e: Any, n: Node) -> str | tuple[str, int]:
    """PyTorch takes two numbers or two tensors for bounds."""
    if e.is_number(n.args[1]) == e.is_number(n.args[2]):
        return f"torch.clamp({', '.join(map(e.arg, n.args))})"
    written = with_tensors("torch.clamp")
    assert callable(written)
    return written(e, n)


elementwise(
    "clip",
    lambda x, low, high: np.clip(x, low, high),
    clip_vjp,
    shape=broadcast,
    text="np.clip",
    torch=clamped,
    jax="jnp.clip",
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


def where_vjp(g: Node, y: Node, c: Node, a: Node, b: Node) -> Gradients:
    """Each element's gradient is that of its choice.

    A sum of exponentials has it without a choice: where it is 0, each of them multiplies it by 0.
    """
    if (total := guarded_sum(c, a, b)) is not None:
        return None, g if total is a else None, g if total is b else None
    first, second = build("where", c, g, 0.0), build("where", c, 0.0, g)
    if world().ties == "half" and c.op in ORDERED and any(x.kind == "f" for x in c.args):
        shared = build("equal", *c.args)
        first, second = (build("where", shared, 0.5 * g, d) for d in (first, second))
    return None, first, second


def choice(e: Any, n: Node) -> str:
    """Two numbers would make an array of double precision in NumPy."""
    condition, one, other = n.args
    plainly = f"np.where({', '.join(map(e.arg, n.args))})"
    if n.kind == "f" and number(one) is not None and number(other) is not None and e.like:
        is_truth = condition.kind == "b" and (number(one), number(other)) == (1, 0)
        return str(e.as_float(condition)) if is_truth else f"{plainly}.astype({e.float})"
    return plainly


def choice_of_tensors(e: Any, n: Node) -> str:
    """PyTorch takes two numbers for single precision, and truths alone for the condition."""
    condition, one, other = n.args
    if e.is_number(condition):
        return f"({e.arg(one)} if {e.arg(condition)} else {e.arg(other)})"
    if n.kind == "f" and condition.kind == "b" and (number(one), number(other)) == (1, 0):
        return str(e.as_float(condition))
    test = e.arg(condition) if condition.kind == "b" else f"{e.arg(condition, 3)} != 0"
    if n.kind == "f" and e.is_number(one) and e.is_number(other):
        numbers = f"torch.tensor(({e.arg(one)}, {e.arg(other)}){e.dtype()})"
        return f"torch.where({test}, *{numbers})"
    return f"torch.where({test}, {e.arg(one)}, {e.arg(other)})"


ORDERED = ("greater", "less", "greater_equal", "less_equal")
elementwise(
    "where",
    np.where,
    where_vjp,
    shape=lambda c, a, b: (broadcast(c, a, b)[0], broadcast(a, b)[1]),
    text=choice,
    rewrite=where_rule,
    torch=choice_of_tensors,
    jax="jnp.where",
    draw=(bits, normal, normal),
)


def size_kind(x: Node) -> tuple[Shape, str]:
    """A size is real."""
    return x.shape, x.kind.replace("c", "f")


def without_sign(g: Node, x: Node, depth: int = 6) -> Node | None:
    """A product without its factor sign(x); None where it has none."""
    if g.op not in ("multiply", "divide", "negative") or not depth:
        return None
    for k, each in enumerate(g.args[: 1 if g.op == "divide" else 2]):
        if each.op == "sign" and each.args[0] is x and g.op == "multiply":
            return g.args[1 - k]
        if (bare := without_sign(each, x, depth - 1)) is not None:
            return build(g.op, *g.args[:k], bare, *g.args[k + 1 :])
    return None


def size_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """The direction of x, which is none at 0.

    Twice that is 1: sign(x) f(|x|) has the slope of f, at 0 as well where it is smooth.
    """
    if x.kind == "c":
        return (g * (x / nonzero(y)),)
    if (bare := without_sign(g, x)) is not None:
        return (bare if bare.shape == x.shape else build("broadcast_to", bare, shape=x.shape),)
    if world().ties == "right":
        return (build("where", build("greater_equal", x, 0), g, -g),)
    return (g * build("sign", x),)


elementwise(
    "abs",
    np.absolute,
    size_vjp,
    shape=size_kind,
    aliases=(np.fabs,),
)
