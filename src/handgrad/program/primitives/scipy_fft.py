"""scipy.fft: NumPy's transforms by its names, and cosine transforms by the complex ones."""

from typing import Any

import numpy as np

from handgrad.program.arranging import axis_of
from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.fixed import constant
from handgrad.program.primitives.index import section
from handgrad.program.primitives.joining import concatenate
from handgrad.program.primitives.rearrange import moveaxis
from handgrad.program.primitives.table import FUNCTIONS, applied, known, module_of_scipy, refuse
from handgrad.program.sizes import Size

scipy_fft = module_of_scipy("fft")

for _name in ("fft", "ifft", "rfft", "irfft"):
    for _ending in ("", "2", "n"):
        known(getattr(scipy_fft, _name + _ending))(FUNCTIONS[getattr(np.fft, _name + _ending)])
for _name in ("fftshift", "ifftshift", "fftfreq", "rfftfreq"):
    known(getattr(scipy_fft, _name))(FUNCTIONS[getattr(np.fft, _name)])


def _turns(points: Size, sign: int) -> Node:
    """A quarter of a turn of the complex plane in as many steps as there are points."""
    places = build("arange", size=points)
    return build("exp", places * (sign * 0.5j * np.pi / as_node(points)))


def _second(x: Node) -> Node:
    """2 Σ x_n cos(π k (2n + 1) / 2N) along the last axis, from one transform of length 2N."""
    points = x.shape[-1]
    y = section(applied(np.fft.fft, x, points * 2), x.ndim - 1, Size.of(0), points)
    return build("real", y * _turns(points, -1)) * 2


def _third(x: Node) -> Node:
    """x_0 + 2 Σ x_n cos(π n (2k + 1) / 2N) along the last axis."""
    points = x.shape[-1]
    y = applied(np.fft.ifft, x * _turns(points, 1), points * 2)
    y = build("real", section(y, x.ndim - 1, Size.of(0), points))
    return y * (as_node(points) * 4) - section(x, x.ndim - 1, Size.of(0), Size.of(1))


def _first_scaled(x: Node, factor: float) -> Node:
    """The array with its first element along the last axis times a factor."""
    axis = x.ndim - 1
    first = section(x, axis, Size.of(0), Size.of(1)) * factor
    return concatenate([first, section(x, axis, Size.of(1), x.shape[-1])], axis)


def _transformed(x: Any, kind: Any, n: Any, axis: Any, norm: Any, *, back: bool) -> Node:
    x, kind = as_node(x), constant(kind)
    if kind not in (2, 3) or n is not None:
        refuse("only cosine transforms of types 2 and 3 are known, of whole axes")
    along = axis_of(constant(axis), x.ndim)
    x = moveaxis(x, along, -1)
    points = as_node(x.shape[-1])
    to_frequencies = (kind == 2) != back
    if norm == "ortho":
        half = build("sqrt", points * 2)
        if to_frequencies:
            y = _first_scaled(_second(x), np.sqrt(0.5)) / half
        else:
            y = _third(_first_scaled(x, np.sqrt(2.0)) / half)
    else:
        y = _second(x) if to_frequencies else _third(x)
        if (norm in (None, "backward")) == back:
            y = y / (points * 2)
    return moveaxis(y, -1, along)


@known(scipy_fft.dct)
def dct(x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, **_: Any) -> Node:
    return _transformed(x, type, n, axis, norm, back=False)


@known(scipy_fft.idct)
def idct(x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, **_: Any) -> Node:
    return _transformed(x, type, n, axis, norm, back=True)


@known(scipy_fft.dctn)
def dctn(
    x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, **_: Any
) -> Node:
    return _over_axes(dct, x, type, s, axes, norm)


@known(scipy_fft.idctn)
def idctn(
    x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, **_: Any
) -> Node:
    return _over_axes(idct, x, type, s, axes, norm)


def _over_axes(transform: Any, x: Any, kind: Any, s: Any, axes: Any, norm: Any) -> Node:
    x = as_node(x)
    for axis in range(x.ndim) if axes is None else constant(tuple(axes)):
        x = transform(x, kind, s, axis, norm)
    return x
