"""Functions that only arrange the values of an array: in another shape, or with its axes turned."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.program.nodes import Node, mapped

Order = tuple[int, ...]

#: Functions whose result has the values of the operand, in order, in another shape.
RESHAPING: Final = frozenset(
    {
        *("reshape", "expand_dims", "squeeze", "ravel", "flatten"),
        *("unsqueeze", "atleast_1d", "atleast_2d"),
    }
)
#: Those too whose result has the values of the operand in another type or place, or repeated.
SHAPING: Final = RESHAPING | {
    *("astype", "asarray", "copy", "contiguous", "require", "positive", "broadcast_to"),
    *("detach", "clone"),
}


def axis_of(axis: Any, ndim: int) -> int:
    """One axis as a number from 0."""
    number = int(axis)
    if not -ndim <= number < ndim:
        raise ValueError(f"axis {number} of an array of {ndim} axes")
    return number % ndim


def _permuted(ndim: int, *axes: Any) -> Order:
    """Return the axes as they are given, in one tuple or one by one; without any, all reversed."""
    if not axes or axes[0] is None:
        return tuple(range(ndim))[::-1]
    order = tuple(axis_of(each, ndim) for each in (axes[0] if np.ndim(axes[0]) else axes))
    if sorted(order) != list(range(ndim)):
        raise ValueError(f"axes {order} for an array of {ndim} axes")
    return order


def _swapped(ndim: int, axis1: Any, axis2: Any) -> Order:
    first, second = axis_of(axis1, ndim), axis_of(axis2, ndim)
    order = list(range(ndim))
    order[first], order[second] = second, first
    return tuple(order)


def _last_two(ndim: int) -> Order:
    return _swapped(ndim, -1, -2) if ndim > 1 else tuple(range(ndim))


def _moved(ndim: int, source: Any, destination: Any) -> Order:
    sources, targets = (
        [axis_of(each, ndim) for each in np.atleast_1d(given)] for given in (source, destination)
    )
    order = [each for each in range(ndim) if each not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return tuple(order)


def _rolled(ndim: int, axis: Any, start: Any = 0) -> Order:
    moved, to = axis_of(axis, ndim), operator.index(start)
    to = to + ndim if to < 0 else to
    order = [each for each in range(ndim) if each != moved]
    order.insert(to - 1 if to > moved else to, moved)
    return tuple(order)


#: By the names of NumPy and the array API: from the number of axes and the settings to the order.
ORDERS: Final[dict[str, Callable[..., Order]]] = {
    "matrix_transpose": _last_two,
    "moveaxis": _moved,
    "permute_dims": lambda ndim, *given, axes=None: _permuted(ndim, *given or (axes,)),
    "rollaxis": _rolled,
    "swapaxes": _swapped,
}
ORDERS["transpose"] = ORDERS["permute_dims"]
#: Attributes of an array that turn its axes, by the function that does so.
ATTRIBUTES: Final = {"T": "permute_dims", "mT": "matrix_transpose"}


def turned(node: Any) -> Order | None:
    """The order that an operation turns the axes of its operand into; None where it does not."""
    if not isinstance(node, Node) or node.op not in ORDERS or not node.args:
        return None
    array, *settings = node.args
    settings, named = mapped(_plain, settings), mapped(_plain, dict(node.kwargs))
    try:
        return ORDERS[node.op](np.ndim(_plain(array)), *settings, **named)
    except (TypeError, ValueError):  # settings that another library has
        return None


def is_transpose(node: Any) -> bool:
    """True for an operation that swaps the last two axes, in whatever way it is written."""
    order = turned(node)
    return order is not None and order == _last_two(len(order))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Node) else value
