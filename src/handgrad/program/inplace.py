"""What may be changed in place: who reads an array last, and which changes lead to the next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from handgrad.program.node import Loop, Node

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


def changes_carried(loop: Loop, k: int) -> bool:
    """Return whether the rounds of a loop change a carried array in place, or a loop inside that
    nothing else in a round reads it beside.
    """
    carry, result = loop.body.inputs[loop.constants + k], loop.body.outputs[k]
    if result is carry or chain(result, carry):
        return result is not carry
    if result.op != "part" or result.args[0].op != "loop":
        return False
    node, place = result.args[0], result.attrs["index"]
    inner: Loop = node.attrs["loop"]
    if place >= inner.carried or node.args[inner.constants + place] is not carry:
        return False
    readers = [n for n in loop.body.body for a in n.args if a is carry]
    handed = any(out is carry for out in loop.body.outputs[: loop.carried])
    is_alone = len(readers) == 1 and readers[0] is node and not handed
    return is_alone and changes_carried(inner, place)


def chain(result: Node, carry: Node) -> list[Node]:
    """The changes in place from a carried array to its next, in order.

    There are none where the next is made anew.
    """
    found = []
    while result.op in CHANGES:
        found.append(result)
        result = result.args[0]
    return found[::-1] if result is carry else []
