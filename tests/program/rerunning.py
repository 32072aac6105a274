"""A run of a program again: on other values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from handgrad.program import Node


def rerun(nodes: Iterable[Node], values: Mapping[Node, Any]) -> dict[Node, Any]:
    """The values of nodes, in order, that change where some have the given values."""
    found: dict[Node, Any] = dict(values)

    def value(node: Node) -> Any:
        return found.get(node, node.value)

    for node in nodes:
        if node in values or node.function is None or found.keys().isdisjoint(node.operands):
            continue
        args, kwargs = node.called_with(value)
        found[node] = node.function(*args, **kwargs)
    return found
