"""Functions of sequences: convolve, correlate, polynomials and interpolation."""

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.contract import conjugated, contract
from handgrad.program.primitives.fixed import count, is_within
from handgrad.program.primitives.index import Slot
from handgrad.program.primitives.rearrange import flip
from handgrad.program.primitives.repeating import constant_pad, sliding_window_view
from handgrad.program.primitives.table import known, refuse
from handgrad.program.sizes import Size

ZERO = Size.of(0)


def slid(x: Node, v: Node, mode: Any) -> Node:
    """Products of a sequence with each window of another, which is longer unless it is full."""
    n = v.shape[0]
    if mode in ("full", 2):
        x = constant_pad(x, [(n - 1, n - 1)], 0)
    elif mode in ("same", 1):
        x = constant_pad(x, [(n // 2, (n - 1) // 2)], 0)
    elif mode not in ("valid", 0):
        refuse(f"mode {mode!r} is not known", "mode 'full', 'same' or 'valid'")
    return contract(sliding_window_view(x, n), v, (0, 1), (1,), (0,))


@known(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Node:
    x, kernel = as_node(a), as_node(v)
    if mode not in ("full", 2) and not is_within(kernel.shape[0], x.shape[0]):
        x, kernel = kernel, x
    return slid(x, flip(kernel, 0), mode)


@known(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Node:
    x, kernel = as_node(a), conjugated(as_node(v))
    if not is_within(kernel.shape[0], x.shape[0]):
        return flip(slid(kernel, x, mode), 0)
    return slid(x, kernel, mode)


@known(np.polyval)
def polyval(p: Any, x: Any) -> Node:
    """Horner's rule: the coefficient of the highest power comes first."""
    coefficients, at = as_node(p), as_node(x)
    length = count(coefficients.shape[0])
    y: Node | None = None
    for k in range(length):
        c = build("getitem", coefficients, index=(Size.of(k),))
        y = c if y is None else y * at + c
    assert y is not None
    return y if y.ndim == at.ndim else build("broadcast_to", y, shape=at.shape)


@known(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Node:
    """Straight lines between points; beyond the ends the end's value, or that given."""
    if period is not None:
        refuse("np.interp with a period is not known", "np.remainder of x first")
    at, places, values = as_node(x), as_node(xp), as_node(fp)
    size = as_node(places.shape[0])
    k = build("searchsorted", places, at, side="right")
    k = build("minimum", build("maximum", k, 1), size - 1)
    x0, x1, f0, f1 = (
        build("getitem", v, i, index=(Slot(0),)) for v in (places, values) for i in (k - 1, k)
    )
    width = x1 - x0
    apart = build("where", build("equal", width, 0), 1.0, width)  # points in one place: a step
    inside = f0 + (at - x0) * ((f1 - f0) / apart)
    low, high = (build("getitem", places, index=(i,)) for i in (ZERO, places.shape[0] - 1))
    first, last = (build("getitem", values, index=(i,)) for i in (ZERO, values.shape[0] - 1))
    out = build("where", build("less", at, low), first if left is None else left, inside)
    return build("where", build("greater", at, high), last if right is None else right, out)
