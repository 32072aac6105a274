"""Keys of arrays as templates: slices of sizes, sizes, new axes, and slots for index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node
from handgrad.program.primitives.index import Slot
from handgrad.program.sizes import Size


def template(node: Node, key: Any) -> tuple[list[Node], tuple[Any, ...]]:
    """The index arrays and the template of `x[key]`, with a part for each axis of x.

    The key is one whose tracers are nodes and whose traced integers are sizes.
    """
    parts = list(key) if isinstance(key, tuple) or _is_of_parts(key) else [key]
    used = sum(map(_axes, parts))
    if used > node.ndim:
        raise IndexError(f"{used} indices for an array of {node.ndim} axes")
    at = next((i for i, k in enumerate(parts) if k is Ellipsis), len(parts))
    parts[at : at + 1] = [slice(None)] * (node.ndim - used)
    arrays: list[Node] = []
    index: list[Any] = []
    for part in parts:
        if isinstance(part, slice):
            places = (part.start, part.stop, part.step)
            index.append(slice(*(None if p is None else _place(p) for p in places)))
        elif part is None:
            index.append(None)
        elif isinstance(part, list | tuple | range | np.ndarray | Node):
            arrays.append(as_node(list(part) if isinstance(part, tuple | range) else part))
            index.append(Slot(len(arrays) - 1))
        else:
            index.append(_place(part))
    return arrays, tuple(index)


def _is_of_parts(key: Any) -> bool:
    """Return whether a list is a key with a part for each axis, as PyTorch takes one of slices."""
    parts = key if isinstance(key, list) else []
    return any(part is None or part is Ellipsis or isinstance(part, slice) for part in parts)


def _axes(part: Any) -> int:
    """The number of axes that a part of a key stands for."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, Node):
        return part.ndim if part.kind == "b" else 1
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1


def _place(part: Any) -> Size:
    if isinstance(part, Size):
        return part
    if isinstance(part, Node):  # the lengths of sequences in an array, such as x[i, : n[i]]
        from handgrad.program.primitives.fixed import count

        return Size.of(count(part))
    return Size.of(part.__index__())
