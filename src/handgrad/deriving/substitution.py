"""Nodes with others in the place of some, built again."""

from __future__ import annotations

from collections.abc import Sequence

from handgrad.program.node import Node, Program, World, build


def substituted(node: Node, swap: dict[int, Node]) -> Node:
    """A node whose operands, however deep, are swapped; `swap` learns what became of each."""
    stack = [node]
    while stack:
        n = stack[-1]
        if id(n) in swap or not n.args:
            stack.pop()
            continue
        waiting = [a for a in n.args if a.args and id(a) not in swap]
        if waiting:
            stack += reversed(waiting)
            continue
        stack.pop()
        args = [swap.get(id(a), a) for a in n.args]
        same = all(a is b for a, b in zip(args, n.args, strict=True))
        made = n if same else build(n.op, *args, **n.attrs)
        made.take_name(n)
        made.line = made.line or n.line
        swap[id(n)] = made
    return swap.get(id(node), node)


def wide(node: Node, world: World) -> Node:
    """A part of a loop as one of the form that also stacks what its reverse reads; else itself."""
    while node.op == "part" and id(node.args[0]) in world.wide:
        node = world.wide[id(node.args[0])][node.attrs["index"]]
    return node


def widened(nodes: Sequence[Node], world: World) -> list[Node]:
    """Nodes with each loop in its wide form."""
    body = Program([], list(nodes)).body
    swap = {id(n): found for n in body if (found := wide(n, world)) is not n}
    return [substituted(n, swap) for n in nodes]
