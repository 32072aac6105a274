"""Questions about the programs of a layer: what belongs to which layer, and what is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from handgrad.derivation.formulas.formula import Formula
from handgrad.program import Frame, Node, Program, leaves, mapped


def layer_paths(run: Program, paths: Mapping[int, str]) -> dict[Frame, str]:
    """The layer whose method each frame is."""
    owners = {each.frame: each.value for each in run.assignments if each.name == "self"}
    owners[run.frame] = run.arguments.get("self")
    return {frame: paths[id(owner)] for frame, owner in owners.items() if id(owner) in paths}


def owners(run: Program) -> dict[Node, Node]:
    """The call of an op that gave each of its outputs."""
    return {
        each: each.args[0]
        for each in run.nodes
        if each.op == "element" and each.args[0].op.endswith((".forward", ".backward"))
    }


def resolve_elements(run: Program) -> None:
    """Put what was stored at an index of an array in the place of the element there."""
    stands_for: dict[Node, Node] = {}
    for node in run.nodes:
        node.args = mapped(lambda each: _of(stands_for, each), node.args)
        node.kwargs = mapped(lambda each: _of(stands_for, each), dict(node.kwargs))
        node.operands = tuple(leaves((node.args, node.kwargs)))
        if node.op == "getitem" and (stored := _stored(*node.args)) is not None:
            stands_for[node] = stored


def _of(stands_for: Mapping[Node, Node], value: Any) -> Any:
    return stands_for.get(value, value) if isinstance(value, Node) else value


def _stored(array: Any, index: Any) -> Node | None:
    while isinstance(array, Node) and array.op == "store" and isinstance(index, int):
        base, at, value = array.args
        if at == index:
            return value if isinstance(value, Node) else None
        if not isinstance(at, int):
            return None
        array = base
    return None


def inner_inputs(node: Node, known: Mapping[Node, Formula]) -> Iterator[Node]:
    """The inputs that the definition of a node writes by a symbol, but for those that have one."""
    if node.op == "input":
        if node not in known and np.ndim(node.value) > 0:
            yield node
        return
    for each in node.operands:
        if each not in known:
            yield from inner_inputs(each, known)


def in_order(nested: Any) -> Iterator[Any]:
    """What stands in nested tuples, also where it is None."""
    if isinstance(nested, tuple):
        for each in nested:
            yield from in_order(each)
    else:
        yield nested
