"""Makes records of element-wise functions: what broadcasts, examples, NumPy's signature.

`vjp` is written for operands of the result's shape: (gradient, result, *operands) → a gradient for
each operand; the mechanism sums it over axes that were broadcast.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from handgrad.program.node import PRIMITIVES, Node, Primitive, as_node, build
from handgrad.program.primitives.axes import Shape, broadcast, floating, unbroadcast
from handgrad.program.primitives.table import Spelling, known, refuse

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
Gradients = tuple[Node | float | None, ...]


def between(low: float, high: float) -> Draw:
    """Examples drawn evenly from an interval."""
    return lambda rng, shape: rng.uniform(low, high, shape)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Examples of either sign, none near 0, where many functions have a kink."""
    x = rng.standard_normal(shape)
    return np.asarray(x + np.copysign(0.1, x))


def bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Examples that are true or false."""
    return np.asarray(rng.random(shape) < 0.5)


def whole(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Examples that are small integers."""
    return np.asarray(rng.integers(0, 6, shape))


positive = between(0.5, 2)
inside = between(-0.9, 0.9)

SHAPES: dict[int, list[list[tuple[int, ...]]]] = {
    1: [[(3, 2)], [(4,)], [()]],
    2: [[(3, 2), (3, 2)], [(3, 2), (2,)], [(3, 1), (4,)], [(), (3,)]],
    3: [[(3, 2), (3, 2), (3, 2)], [(3, 1), (2,), (3, 2)], [(4,), (), (4,)]],
}


def domain(draws: Sequence[Draw]) -> Callable[[np.random.Generator], list[Array]]:
    """Operands of other shapes each time, broadcast against each other."""

    def operands(rng: np.random.Generator) -> list[Array]:
        choices = SHAPES[len(draws)]
        shapes = choices[rng.integers(len(choices))]
        return [draw(rng, shape) for draw, shape in zip(draws, shapes, strict=True)]

    return operands


def of_operand(d: Node, a: Node) -> Node:
    """A gradient in the shape of the operand, and real where the operand is."""
    return unbroadcast(build("real", d) if d.kind == "c" and a.kind != "c" else d, a)


class ElementwiseColumns(TypedDict, total=False):
    """What a record has beside its functions, as `Primitive` describes it."""

    shape: Callable[..., tuple[Shape, str]]
    text: Spelling
    torch: Spelling
    jax: Spelling
    precedence: int
    cases: tuple[dict[str, Any], ...]
    smooth: bool


def elementwise(
    name: str,
    function: Callable[..., Any],
    vjp: Callable[..., Gradients] | None,
    *,
    draw: Draw | tuple[Draw, ...] = normal,
    rewrite: Callable[..., Node | float | None] | None = None,
    aliases: tuple[Callable[..., Any], ...] = (),
    **columns: Unpack[ElementwiseColumns],
) -> None:
    """Adds a record, and its signature where `function` is NumPy's or SciPy's."""
    draws = draw if isinstance(draw, tuple) else (draw,) * getattr(function, "nin", 1)

    def sweep(g: Node, y: Node, *args: Node, **attrs: Any) -> tuple[Node | None, ...]:
        if vjp is None:
            return (None,) * len(args)
        found = zip(vjp(g, y, *args, **attrs), args, strict=True)
        return tuple(None if d is None else of_operand(as_node(d), a) for d, a in found)

    def simpler(*args: Node, **attrs: Any) -> Node | float | None:
        """An operand spread to the others' shape need not be; then the record's own rule."""
        narrow = [a.args[0] if a.op == "broadcast_to" else a for a in args]
        for k, a in enumerate(args):
            trial = [narrow[j] if j == k else x for j, x in enumerate(args)]
            if narrow[k] is not a and broadcast(*trial)[0] == broadcast(*args)[0]:
                return build(name, *trial, **attrs)
        return rewrite(*args) if rewrite else None

    text = columns.setdefault("text", f"np.{name}")
    columns.setdefault("shape", floating)
    if isinstance(text, str):
        columns.setdefault("torch", text.replace("np.", "torch."))
        jax = text.replace("np.", "jnp.").replace("scipy.", "jax.scipy.")
        columns.setdefault("jax", jax)
    PRIMITIVES[name] = Primitive(
        name=name,
        evaluate=function,
        vjp=sweep,
        domain=domain(draws),
        rewrite=simpler,
        analytic=True,  # of complex numbers; functions that are not have real values
        **columns,
    )
    known(function, *aliases)(ufunc(name))


def ufunc(name: str) -> Callable[..., Node]:
    """NumPy's signature of an element-wise function."""

    def signature(*args: Any, where: Any = True, dtype: Any = None, **keywords: Any) -> Node:
        if where is not True:
            refuse(f"np.{name} with where= leaves the other elements undefined", "np.where")
        if unknown := set(keywords) - {"casting", "order", "subok"}:
            refuse(f"np.{name} with {', '.join(sorted(unknown))}= is not known")
        return cast(build(name, *args), dtype)

    return signature


def cast(x: Node, dtype: Any) -> Node:
    """A result in the kind of number that was asked for."""
    kind = x.kind if dtype is None else np.dtype(dtype).kind.replace("u", "i")
    return x if kind == x.kind else build("astype", x, kind=kind)


def nonzero(x: Node) -> Node:
    """A divisor with 1 for 0, beside a factor that is 0 there."""
    return build("where", build("equal", x, 0), 1.0, x)
