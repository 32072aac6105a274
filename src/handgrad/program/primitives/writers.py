"""Values that a store with index arrays leaves: of several for one place, the last."""

from collections.abc import Sequence

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.axes import product
from handgrad.program.sizes import ONE

_ORDERS = ("argsort", "argpartition")


def last_writers(kept: Node, base: Node, arrays: Sequence[Node], index: tuple[object, ...]) -> Node:
    """Values of x[index], with zeros for those whose place a later one of them takes."""
    if distinct(arrays):
        return kept
    numbers = build("arange", size=product(kept.shape))
    numbers = build("reshape", numbers, shape=kept.shape)
    unset = build("zeros", shape=base.shape, kind="i")
    written = build("store", unset, numbers, *arrays, index=index)
    is_last = build("equal", build("getitem", written, *arrays, index=index), numbers)
    return build("where", is_last, kept, 0.0)


def distinct(arrays: Sequence[Node]) -> bool:
    """True where index arrays are known to name no place twice."""
    if all(a.kind == "b" for a in arrays):
        return True
    if any(a.kind == "b" for a in arrays):
        return False
    if all(a.op in ("const", "table") for a in arrays):
        values = [np.asarray(a.value) for a in arrays]
        places = np.stack([v.ravel() for v in np.broadcast_arrays(*values)], axis=-1)
        one_sided = all((v >= 0).all() or (v < 0).all() for v in values)
        return one_sided and len(np.unique(places, axis=0)) == len(places)
    wide = {k for a in arrays for k in range(-a.ndim, 0) if a.shape[k] != ONE}
    counted = {axis for a in arrays for axis in _counted(a)}
    ordered = {axis for a in arrays if (axis := _ordered(a)) is not None}
    missing = wide - counted
    return not missing or (len(missing) == 1 and missing <= ordered)


def _counted(array: Node) -> set[int]:
    """The axis, from the end, along which an array counts, as arange does."""
    inner = array
    while inner.op == "reshape":
        inner = as_node(inner.args[0])
    longer = [k for k in range(-array.ndim, 0) if array.shape[k] != ONE]
    return set(longer) if inner.op == "arange" and len(longer) == 1 else set()


def _ordered(array: Node) -> int | None:
    """The axis, from the end, along which an array has some of an order's places, each once."""
    rank = array.ndim
    while array.op == "getitem" and len(array.args) == 1:
        if array.ndim != array.args[0].ndim:
            return None
        array = array.args[0]
    if array.op not in _ORDERS:
        return None
    axis: int = array.attrs["axis"]
    return axis if axis < 0 else axis - rank
