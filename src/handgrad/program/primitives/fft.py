"""Discrete Fourier transforms, over as many points along each axis as are asked for.

A transform is linear; its transpose for complex numbers is the inverse transform times the number
of points. Shorter axes are filled up with zeros, longer ones are cut before.
"""

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import axis_of, product
from handgrad.program.primitives.fixed import constant
from handgrad.program.primitives.index import section
from handgrad.program.primitives.rearrange import sizes
from handgrad.program.primitives.record import (
    Gradients,
    Sample,
    complex_normal,
    record,
)
from handgrad.program.primitives.table import FUNCTIONS, creation, known, refuse
from handgrad.program.sizes import Size

Shape = tuple[Size, ...]
Axes = tuple[int, ...]


def replaced(x: Node, shape: Shape, axes: Axes) -> Shape:
    """The sizes of an operand with others along some axes."""
    out = list(x.shape)
    for s, a in zip(shape, axes, strict=True):
        out[a] = s
    return tuple(out)


def like(g: Node, x: Node, axes: Axes) -> Node:
    """A gradient cut to the operand's own length, and real where the operand is."""
    for a in axes:
        if g.shape[a] != x.shape[a]:
            g = section(g, a, 0, x.shape[a])
    return g if x.kind == "c" else build("real", g)


def fft_vjp(g: Node, y: Node, x: Node, shape: Shape, axes: Axes) -> Gradients:
    back = build("ifft", g, shape=shape, axes=axes) * as_node(product(shape))
    return (like(back, x, axes),)


def ifft_vjp(g: Node, y: Node, x: Node, shape: Shape, axes: Axes) -> Gradients:
    back = build("fft", g, shape=shape, axes=axes) / as_node(product(shape))
    return (like(back, x, axes),)


def transform_text(name: str, library: str) -> Any:
    """One axis by fft, two and more by fftn; the length is written where it is not the axis'."""

    def text(e: Any, n: Node) -> str:
        x, shape, axes = n.args[0], n.attrs["shape"], n.attrs["axes"]
        own = tuple(x.shape[a] for a in axes) == shape
        if len(axes) == 1:
            length = "" if own else f", {e.size(shape[0])}"
            key = "dim" if library == "torch" else "axis"
            last = "" if axes[0] == x.ndim - 1 else f", {key}={axes[0]}"
            return f"{library}.fft.{name}({e.arg(x)}{length}{last})"
        length = "None" if own else e.sizes(shape)
        return f"{library}.fft.{name}n({e.arg(x)}, {length}, {axes})"

    return text


def _transform(name: str, function: Any, vjp: Any) -> None:
    record(
        name,
        lambda x, shape, axes: function(x, shape, axes),
        lambda x, shape, axes: (replaced(x, shape, axes), "c"),
        vjp,
        text=transform_text(name, "np"),
        torch=transform_text(name, "torch"),
        jax=transform_text(name, "np"),
        samples=(
            Sample(("M N",), {"shape": (_N,), "axes": (1,)}, (complex_normal,)),
            Sample(("M N",), {"shape": (_M + 2, _N), "axes": (0, 1)}, (complex_normal,)),
            Sample(("M N",), {"shape": (_M,), "axes": (0,)}),
        ),
    )


_M, _N = Size.of("M"), Size.of("N")
_transform("fft", np.fft.fftn, fft_vjp)
_transform("ifft", np.fft.ifftn, ifft_vjp)


def half(n: Size) -> Size:
    """Return how many of n points of a real array's transform are kept."""
    return n // 2 + 1


def rfft_vjp(g: Node, y: Node, x: Node, n: Size, axis: int) -> Gradients:
    """The half that is kept filled up with zeros, and transformed back."""
    back = build("ifft", g, shape=(n,), axes=(axis,)) * as_node(n)
    return (like(back, x, (axis,)),)


def irfft_vjp(g: Node, y: Node, x: Node, n: Size, axis: int) -> Gradients:
    """Every point but the first and a middle one counts for its mirror image as well."""
    k = build("arange", size=half(n))
    weight = build(
        "where", build("logical_or", build("equal", k, 0), build("equal", k * 2, n)), 1.0, 2.0
    )
    weight = build(
        "reshape", weight, shape=tuple(half(n) if a == axis else 1 for a in range(x.ndim))
    )
    back = build("rfft", g, n=n, axis=axis) * (weight / as_node(n))
    return (like(back, x, (axis,)),)


def real_text(name: str, library: str) -> Any:
    def text(e: Any, n: Node) -> str:
        x, length, axis = n.args[0], n.attrs["n"], n.attrs["axis"]
        own = x.shape[axis] if name == "rfft" else (x.shape[axis] - 1) * 2
        count = "" if own == length else f", {e.size(length)}"
        key = "dim" if library == "torch" else "axis"
        last = "" if axis == x.ndim - 1 else f", {key}={axis}"
        return f"{library}.fft.{name}({e.arg(x)}{count}{last})"

    return text


record(
    "rfft",
    lambda x, n, axis: np.fft.rfft(x, n, axis),
    lambda x, n, axis: (replaced(x, (half(n),), (axis,)), "c"),
    rfft_vjp,
    text=real_text("rfft", "np"),
    torch=real_text("rfft", "torch"),
    samples=(
        Sample(("M N",), {"n": _N, "axis": 1}),
        Sample(("M N",), {"n": _M + 1, "axis": 0}),
    ),
)
record(
    "irfft",
    lambda x, n, axis: np.fft.irfft(x, n, axis),
    lambda x, n, axis: (replaced(x, (n,), (axis,)), "f"),
    irfft_vjp,
    text=real_text("irfft", "np"),
    torch=real_text("irfft", "torch"),
    samples=(
        Sample(("M N",), {"n": _N * 2 - 2, "axis": 1}, (complex_normal,)),
        Sample(("M N",), {"n": _M * 2 - 1, "axis": 0}, (complex_normal,)),
    ),
)


def scaled(y: Node, points: Size, norm: Any, inverse: bool) -> Node:
    """Another normalisation than that of the inverse by the number of points."""
    if norm in (None, "backward"):
        return y
    n = as_node(points)
    if norm == "ortho":
        root = build("sqrt", n)
        return y * root if inverse else y / root
    if norm == "forward":
        return y * n if inverse else y / n
    raise ValueError(f"no normalisation {norm!r}")


def cut(x: Node, n: Size, axis: int) -> Node:
    """At most so many points along an axis."""
    w = world()
    return section(x, axis, 0, n) if w.length(x.shape[axis]) > w.length(n) else x


def complex_signature(name: str, rank: int | None) -> Any:
    """fft, fft2 or fftn, or their inverses."""
    inverse = name == "ifft"

    def transform(x: Node, shape: Any, axes: Any, norm: Any) -> Node:
        numbers = tuple(axis_of(a, x.ndim) for a in constant(axes))
        points = tuple(x.shape[a] for a in numbers) if shape is None else sizes(shape)
        for n, a in zip(points, numbers, strict=True):
            x = cut(x, n, a)
        if len(set(numbers)) < len(numbers):
            for n, a in zip(points[::-1], numbers[::-1], strict=True):
                x = build(name, x, shape=(n,), axes=(a,))
        elif numbers:
            x = build(name, x, shape=points, axes=numbers)
        return scaled(x, product(points), norm, inverse)

    def one(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Node:
        return transform(as_node(a), None if n is None else (n,), (axis,), norm)

    def several(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Node:
        x = as_node(a)
        if axes is None:
            count = rank or (x.ndim if s is None else len(s))
            axes = tuple(range(x.ndim - count, x.ndim))
        return transform(x, s, axes, norm)

    return one if rank == 1 else several


for _name in ("fft", "ifft"):
    known(getattr(np.fft, _name))(complex_signature(_name, 1))
    known(getattr(np.fft, f"{_name}2"))(complex_signature(_name, 2))
    known(getattr(np.fft, f"{_name}n"))(complex_signature(_name, None))


@known(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Node:
    x = as_node(a)
    if x.kind == "c":
        raise TypeError("rfft of complex numbers")
    k = axis_of(constant(axis), x.ndim)
    points = x.shape[k] if n is None else sizes(n)[0]
    return scaled(build("rfft", cut(x, points, k), n=points, axis=k), points, norm, False)


@known(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Node:
    x = as_node(a)
    k = axis_of(constant(axis), x.ndim)
    points = (x.shape[k] - 1) * 2 if n is None else sizes(n)[0]
    x = cut(x, half(points), k)
    return scaled(build("irfft", x, n=points, axis=k), points, norm, True)


def real_axes(x: Node, s: Any, axes: Any, rank: int | None) -> tuple[list[int], list[Any]]:
    """Axes and lengths of a transform of real numbers over several axes."""
    if axes is None:
        count = rank or (x.ndim if s is None else len(s))
        axes = range(x.ndim - count, x.ndim)
    numbers = [axis_of(a, x.ndim) for a in constant(tuple(axes))]
    return numbers, [None] * len(numbers) if s is None else list(sizes(s))


def real_signature(rank: int | None) -> tuple[Any, Any]:
    """rfft2 or rfftn, and its inverse: only the last axis goes by the real transform."""
    fft, ifft = FUNCTIONS[np.fft.fft], FUNCTIONS[np.fft.ifft]

    def forth(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Node:
        x = as_node(a)
        numbers, points = real_axes(x, s, axes, rank)
        y = rfft(x, points[-1], numbers[-1], norm)
        for axis, n in zip(numbers[:-1], points[:-1], strict=True):
            y = fft(y, n, axis, norm)
        return y

    def back(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Node:
        x = as_node(a)
        numbers, points = real_axes(x, s, axes, rank)
        for axis, n in zip(numbers[:-1], points[:-1], strict=True):
            x = ifft(x, n, axis, norm)
        return irfft(x, points[-1], numbers[-1], norm)

    return forth, back


for _suffix, _rank in (("2", 2), ("n", None)):
    _forth, _back = real_signature(_rank)
    known(getattr(np.fft, f"rfft{_suffix}"))(_forth)
    known(getattr(np.fft, f"irfft{_suffix}"))(_back)


@known(np.fft.hfft, np.fft.ihfft)
def hfft(*_: Any, **__: Any) -> Node:
    refuse("np.fft.hfft is not known", "np.fft.irfft of the conjugate")


@creation(np.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, **_: Any) -> Node:
    """Frequencies from 0 upwards, then the negative ones."""
    (points,) = sizes(n)
    middle = points // 2
    places = build("remainder", build("arange", size=points) + middle, points) - middle
    return places * (1.0 / (as_node(points) * d))


@creation(np.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, **_: Any) -> Node:
    (points,) = sizes(n)
    return build("arange", size=half(points)) * (1.0 / (as_node(points) * d))


def shifted(x: Any, axes: Any, sign: int) -> Node:
    x = as_node(x)
    given = range(x.ndim) if axes is None else np.atleast_1d(constant(axes))
    numbers = tuple(axis_of(a, x.ndim) for a in given)
    return build("roll", x, shift=tuple(x.shape[a] // 2 * sign for a in numbers), axis=numbers)


@known(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Node:
    return shifted(x, axes, 1)


@known(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Node:
    return shifted(x, axes, -1)
