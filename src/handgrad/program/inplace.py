"""What may be changed in place: who reads an array last, and which changes lead to the next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from handgrad.program.node import Node

#: Nodes that change an array.
CHANGES: Final = ("add_at", "store")
#: Nodes whose arrays may share the memory of their operand.
VIEWS: Final = ("getitem", "reshape", "transpose", "flip", "diagonal", "broadcast_to")


def last_read(
    node: Node, body: Sequence[Node], named: Collection[int], outputs: Sequence[Node]
) -> int:
    """The place in the body of the last statement that reads a node."""
    if any(out is node for out in outputs):
        return len(body)
    place = {id(n): i for i, n in enumerate(body)}
    readers: dict[int, list[Node]] = {}
    for each in body:
        for operand in each.args:
            readers.setdefault(id(operand), []).append(each)
    last = -1
    for reader in readers.get(id(node), []):
        while id(reader) not in named:
            users = readers.get(id(reader), [])
            if len(users) != 1:
                return len(body)
            reader = users[0]
        last = max(last, place[id(reader)])
    return last


def chain(result: Node, carry: Node) -> list[Node]:
    """The changes in place from a carried array to its next, in order.

    There are none where the next is made anew.
    """
    found = []
    while result.op in CHANGES:
        found.append(result)
        result = result.args[0]
    return found[::-1] if result is carry else []
