"""Names of functions in a tree, and those that arrange values without changing any."""

from __future__ import annotations

from typing import Final

from handgrad.trees import nodes
from handgrad.trees.nodes import Node

SHAPING: Final = frozenset(
    {
        *("reshape", "expand_dims", "squeeze", "astype", "asarray", "broadcast_to", "ravel"),
        *("grouped", "ungrouped", "copy", "contiguous"),
    }
)


def called(function: Node | None) -> str:
    """The last part of a function's name: `exp` of `xp.exp`."""
    match function:
        case nodes.Name(name) | nodes.Attribute(_, name):
            return name
    return ""
