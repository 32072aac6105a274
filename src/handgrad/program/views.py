"""Views: the steps from an array to what shares its memory, forwards and back."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from handgrad.program.node import Node, build

#: One selection or rearrangement: its primitive and attributes.
Step: TypeAlias = tuple[str, dict[str, Any]]
_OPS = ("getitem", "reshape", "transpose", "flip")


def steps(node: Node, base: Node) -> list[Step] | None:
    """The way from an array's node to that of its view, None where there is none to be seen."""
    found: list[Step] = []
    while node is not base:
        if node.op not in _OPS or len(node.args) != 1:
            return None
        found.append((node.op, node.attrs))
        node = node.args[0]
    return found[::-1]


def read(base: Node, way: list[Step]) -> Node:
    """The view of another array."""
    for op, attrs in way:
        base = build(op, base, **attrs)
    return base


def written(base: Node, way: list[Step], value: Node) -> Node:
    """The array after its view has taken a value."""
    if not way:
        return value
    (op, attrs), *rest = way
    if rest:
        value = written(build(op, base, **attrs), rest, value)
    if op == "getitem":
        return build("store", base, value, index=attrs["index"])
    if op == "reshape":
        return build("reshape", value, shape=base.shape)
    if op == "transpose":
        return build("transpose", value, axes=tuple(map(int, np.argsort(attrs["axes"]))))
    return build(op, value, **attrs)
