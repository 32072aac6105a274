"""Nodes with others in the place of some, built again."""

from __future__ import annotations

from handgrad.program.node import Node, build


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
        made.name, made.line = made.name or n.name, made.line or n.line
        swap[id(n)] = made
    return swap.get(id(node), node)
