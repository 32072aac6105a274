"""Calls of the ops' own helpers, written out: what a mask does to scores, and not its name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from handgrad.trees import Function, TreeError, nodes, read
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer

#: Helpers of which the body says more than the name.
_OPENED: Final = frozenset(
    {"active_steps", "in_running_order", "in_time_order", "masked", "within"}
)


def opened(writer: Writer, node: nodes.Call) -> Node | None:
    """What the function that is called computes here; None where the call is to be written."""
    if called(node.function) not in _OPENED:
        return None
    known = writer.frame.opened
    if id(node) not in known:
        known[id(node)] = node, _opened(writer, node)
    return known[id(node)][1]


def _opened(writer: Writer, node: nodes.Call) -> Node | None:
    function = writer.value(node.function)
    tree = _tree(function) if inspect.isfunction(function) else None
    if tree is None:
        return None
    bound = tree.signature.bind(
        *node.arguments, **{each.name: each.value for each in node.keywords}
    )
    names: dict[str, Node] = {
        name: nodes.Constant(parameter.default)
        for name, parameter in tree.signature.parameters.items()
        if parameter.default is not parameter.empty
    }
    for name, value in tree.names.items():
        writer.frame.outer.setdefault(name, value)
    return _returned(writer, tree.body, names | bound.arguments)


@functools.cache
def _tree(function: Callable[..., Any]) -> Function | None:
    try:
        return read(function)
    except TreeError:
        return None


def _returned(writer: Writer, body: tuple[Node, ...], names: dict[str, Node]) -> Node | None:
    """What a body returns, in the names of the caller."""
    for statement in body:
        match statement:
            case nodes.Assign(nodes.Name(name), value):
                names[name] = _with(value, names)
            case nodes.Assign(nodes.Sequence(_, targets), value):
                whole = _with(value, names)
                for i, target in enumerate(targets):
                    if not isinstance(target, nodes.Name):
                        return None
                    names[target.id] = nodes.Index(whole, nodes.Constant(i))
            case nodes.Branch(test, yes, no):
                taken = yes if writer.value(_with(test, names)) else no
                found = _returned(writer, taken, names)
                if found is not None:
                    return found
            case nodes.Return(value):
                return _with(value, names)
            case _:
                return None
    return None


def _with(node: Node, names: dict[str, Node]) -> Node:
    match node:
        case nodes.Name(name):
            return names.get(name, node)
    return nodes.rebuilt(node, lambda part: _with(part, names))
