"""Kinds of values: casts, values that pass no gradient, and complex numbers and their parts.

The gradient of a complex number z = a + ib is ∂L/∂a + i ∂L/∂b for a real L, as PyTorch has it:
that of an analytic function is the adjoint times the conjugate of its derivative.
"""

from typing import Any

import numpy as np

from handgrad.program.node import DTYPES, Node, as_node, build
from handgrad.program.primitives.axes import same
from handgrad.program.primitives.record import (
    Gradients,
    Sample,
    Shaped,
    complex_normal,
    normal,
    record,
)
from handgrad.program.primitives.table import TORCH_TYPES, TYPES, known, plain, refuse

I = as_node(1j)  # noqa: E741 (the imaginary unit)


def cast_text(method: str, types: dict[str, str]) -> Any:
    """A cast by an array's method; of a number of Python by its type."""

    def text(e: Any, n: Node) -> str:
        (x,), kind = n.args, n.attrs["kind"]
        if plain(x):
            return f"{TYPES[kind]}({e.arg(x)})"
        # PyTorch stores no double in an array that is single, as the caller's arrays may be, and
        # a tensor's floats are of the caller's type.
        is_own = (method == "to" or e.floats_alike) and kind == "f" and e.like
        own = e.float if is_own else types[kind]
        if method == "to" and kind == "c":
            return str(e.converted(x, "c"))
        return f"{e.arg(x, 9)}.{method}({own})"

    return text


def astype_vjp(g: Node, y: Node, x: Node, kind: str) -> Gradients:
    return (g if x.kind in "fc" and kind in "fc" else None,)


record(
    "stop",
    lambda x: x,
    same,
    lambda g, y, x: (None,),
    text=lambda e, n: e.expression(n.args[0]),
    torch=lambda e, n: e.expression(n.args[0]),
)
record(
    "astype",
    lambda x, kind: np.asarray(x).astype(DTYPES[kind]),
    lambda x, kind: (x.shape, kind),
    astype_vjp,
    text=cast_text("astype", TYPES),
    torch=cast_text("to", TORCH_TYPES),
    rewrite=lambda x, kind: x if x.kind == kind else None,
    samples=(
        Sample(("M N",), {"kind": "i"}),
        Sample(("M N",), {"kind": "c"}),
    ),
)
record(
    "single",
    lambda x: np.asarray(x).astype(np.float32),
    lambda x: (x.shape, "f"),
    lambda g, y, x: (build("like", g, x) if x.kind == "f" else None,),
    text=lambda e, n: f"{e.arg(n.args[0], 9)}.astype({e.alias}.float32)",
    torch=lambda e, n: f"{e.arg(n.args[0], 9)}.to({e.alias}.float32)",
)


def part_shape(x: Node) -> Shaped:
    return x.shape, "f"


def part_rule(x: Node) -> Node | None:
    return x if x.kind != "c" else None


def named(name: str, attribute: bool = True) -> Any:
    """A property of an array, or a function."""
    return lambda e, n: (
        f"{e.arg(n.args[0], 9)}.{name}" if attribute else f"np.{name}({e.arg(n.args[0])})"
    )


record(
    "real",
    np.real,
    part_shape,
    lambda g, y, x: (g,),
    text=named("real"),
    torch=named("real"),
    rewrite=part_rule,
    samples=(Sample(("M N",), draws=(complex_normal,)),),
)
record(
    "imag",
    np.imag,
    part_shape,
    lambda g, y, x: (g * I if x.kind == "c" else None,),
    text=named("imag"),
    torch=named("imag"),
    samples=(Sample(("M N",), draws=(complex_normal,)),),
)
record(
    "conj",
    np.conjugate,
    same,
    lambda g, y, x: (build("conj", g),),
    text=lambda e, n: f"{e.arg(n.args[0], 9)}.conj()",
    torch=lambda e, n: f"torch.conj_physical({e.arg(n.args[0])})",
    rewrite=lambda x: x if x.kind != "c" else x.args[0] if x.op == "conj" else None,
    samples=(Sample(("M N",), draws=(complex_normal,)),),
)


def angle_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """Across the direction of z, by the inverse of its length; none along it."""
    if x.kind != "c":
        return (None,)
    a, b = build("real", x), build("imag", x)
    return (g * (I * x) / (a * a + b * b),)


record(
    "angle",
    np.angle,
    part_shape,
    angle_vjp,
    text="np.angle",
    torch="torch.angle",
    samples=(Sample(("M N",), draws=(complex_normal,)), Sample(("M N",), draws=(normal,))),
)


def cast(x: Node, kind: Any) -> Node:
    """An array as one of another type.

    Doubles are what a program is traced with; they stand for the type that the arrays have. An
    array that was made single becomes what its own operands are.
    """
    dtype = np.dtype(kind)
    letter = dtype.kind.replace("u", "i")
    if letter not in DTYPES or dtype == np.float16:
        refuse(f"arrays of type {dtype} are not known", "np.float32")
    if letter == "f" and type(x.attrs.get("value")) is float:
        return x  # a number of Python, which is of the type of what it is reckoned with
    if dtype == np.float32 and x.kind in "fib":
        return x if is_single(x) else build("single", x)
    if letter == "f" and is_single(x) and (wide := _double_below(x)) is not None:
        return build("like", x, wide)
    return build("astype", x, kind=letter)


def is_single(x: Node) -> bool:
    """Return whether an array is of float32 though it is traced with doubles."""
    return x.kind == "f" and np.asarray(x.value).dtype == np.float32


def _double_below(x: Node) -> Node | None:
    """The first array of doubles that one of float32 is made of."""
    waiting, seen = [x], set[int]()
    while waiting:
        node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == "f" and np.ndim(node.value) and not is_single(node):
            return node
        waiting += node.args
    return None


@known(np.real)
def real(val: Any) -> Node:
    return build("real", val)


@known(np.imag)
def imag(val: Any) -> Node:
    x = as_node(val)
    return build("imag", x) if x.kind == "c" else build("zeros", shape=x.shape)


@known(np.conjugate, np.conj)
def conj(x: Any, **_: Any) -> Node:
    return build("conj", x)


@known(np.angle)
def angle(z: Any, deg: bool = False) -> Node:
    y = build("angle", z)
    return build("degrees", y) if deg else y


@known(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Node:
    """A real array as it is; of a complex one nobody knows before its values are there."""
    x = as_node(a)
    return x if x.kind != "c" else build("real", x)


@known(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return as_node(x).kind == "c"


@known(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return as_node(x).kind != "c"
