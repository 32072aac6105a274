"""Axes of arrays that are the steps of a loop."""

from __future__ import annotations

from typing import Any

from handgrad.equations import indexing
from handgrad.equations.scope import Scope
from handgrad.equations.shaping import positions, shape, sources, stacked
from handgrad.equations.writer import Writer
from handgrad.program import Node


def find_step_axes(scope: Scope) -> None:
    """Of what loops stack or take steps of, and of what is computed of these or they are computed
    of, step by step."""
    if not scope.loops:
        return
    axes = scope.step_axes
    nodes = [node for program in scope.programs for node in program.nodes]
    for node in nodes:
        arrays = stacked(node)
        if arrays is not None and indexing.generic(Writer(scope), arrays[0]) is not None:
            axes[node] = arrays[1]
        elif node.op == "getitem" and scope.round_of(node) is not None:
            array = node.args[0]
            for axis, each in enumerate(positions(node.args[1])):
                if isinstance(array, Node) and _is_step(scope, each):
                    axes.setdefault(array, axis - len(shape(array)))
    before = -1
    while len(axes) > before:
        before = len(axes)
        for node in nodes:
            if scope.round_of(node) is None:
                _spread(scope, node)


def _is_step(scope: Scope, value: Any) -> bool:
    if not isinstance(value, Node):
        return False
    if value.op == "counter":
        return scope.round_of(value) is not None
    return value.op in ("add", "subtract") and _is_step(scope, value.args[0])


def _spread(scope: Scope, node: Node) -> None:
    axes = scope.step_axes
    if node in axes:
        found = list(sources(node, axes[node]))
        if all(each is not None for each in found):
            for each in found:
                if each is not None:
                    axes.setdefault(*each)
        return
    for axis in range(-len(shape(node)), 0):
        found = list(sources(node, axis))
        if found and all(each is not None and axes.get(each[0]) == each[1] for each in found):
            axes[node] = axis
            return


def is_by_step(scope: Scope, node: Node, axis: int, *, defined: bool = False) -> bool:
    """True where a node is computed step by step along an axis; `defined` where not its symbol but
    what it is made of counts."""
    if stacked(node) is not None:
        return scope.step_axes.get(node) == axis
    if not defined and (node in scope.symbols or node.op == "input"):
        return True
    return all(each is not None and is_by_step(scope, *each) for each in sources(node, axis))
