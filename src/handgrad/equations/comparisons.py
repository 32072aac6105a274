"""Conditions that compare the places of axes, such as those before a length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from handgrad.equations.scope import Scope
from handgrad.equations.shaping import OF_SHAPES, same_axis, shape, shaped
from handgrad.equations.writer import Writer
from handgrad.program import Node
from handgrad.program.functions import is_array
from handgrad.program.sizes import ONE

_COMPARED: Final = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("bitwise_and", "bitwise_or", "logical_and", "logical_or", "bitwise_invert"),
    }
)
#: Operations that a condition goes through before it selects.
_ON_THE_WAY: Final = _COMPARED | {"add", "flip", "getitem", "subtract"}
_ARITHMETIC: Final = frozenset({"add", "subtract", "multiply", "divide", "negative"})


def numbered_axes(writer: Writer, value: Any) -> set[int]:
    """The axes, counted from the last, of which a condition in a value compares the places."""
    node = writer.bare(value)
    if not isinstance(node, Node) or writer.has_symbol(node):
        return set()
    if node.op == "where":
        test, yes, no = node.args
        return {*places(writer, test), *numbered_axes(writer, yes), *numbered_axes(writer, no)}
    parts = node.args if node.op in _ARITHMETIC else ()
    return set[int]().union(*(numbered_axes(writer, each) for each in parts))


def places(writer: Writer, value: Any) -> Iterator[int]:
    """The axes of a condition that are numbered in it."""
    node = writer.bare(value)
    if not isinstance(node, Node) or writer.has_symbol(node):
        return
    found: set[int] = set()
    if node.op in _COMPARED:
        found = {axis for part in node.args for axis in places(writer, part)}
    elif node.op == "flip":
        found = set(places(writer, node.args[0]))
    elif node.op == "arange":
        found = {-1}
    for axis in found:
        outer = same_axis(shape(node), shape(value), axis)
        if outer is not None and shape(value)[outer] != ONE:
            yield outer


def only_selects(scope: Scope, node: Node) -> bool:
    """True where a condition, or what it compares, only says where values are taken from."""
    users = [
        each for each in scope.users[node] if each.op not in OF_SHAPES and is_array(each.value)
    ]
    return bool(users) and all(
        (each.op == "where" and each.args[0] is node)
        or ((each.op in _ON_THE_WAY or shaped(each) is node) and only_selects(scope, each))
        for each in users
    )
