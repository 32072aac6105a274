"""Loops without what nobody reads of them: carried values, stacks, and what these alone need."""

from __future__ import annotations

from collections.abc import Sequence

from handgrad.deriving.substitution import substituted
from handgrad.program.loop_records import looped
from handgrad.program.node import Loop, Node, Program, world


def without_unread(outputs: Sequence[Node]) -> list[Node]:
    """The same values from loops that carry and stack what is read of them."""
    body = Program([], list(outputs)).body
    wanted, lean = set(map(id, outputs)), dict[int, _Lean]()
    for node in reversed(body):
        if id(node) in wanted and node.op == "loop":
            parts = {n.attrs["index"] for n in body if id(n) in wanted and n.args[:1] == (node,)}
            lean[id(node)] = _Lean(node.attrs["loop"], parts)
            wanted |= {id(node.args[at]) for at in lean[id(node)].operands}
        elif id(node) in wanted:
            wanted |= set(map(id, node.args))
    swap: dict[int, Node] = {}
    for node in body:
        if id(node) in lean and not lean[id(node)].is_whole:
            given = [substituted(node.args[at], swap) for at in lean[id(node)].operands]
            made = looped(lean[id(node)].loop, given)
            places = dict(zip(lean[id(node)].indices, made, strict=True))
            for n in body:
                if n.args[:1] == (node,) and n.attrs["index"] in places:
                    swap[id(n)] = places[n.attrs["index"]]
                    swap[id(n)].take_name(n)
    return [substituted(n, swap) for n in outputs]


class _Lean:
    """A loop of the results that are read, and of the carried values that these read."""

    def __init__(self, loop: Loop, read: set[int]) -> None:
        inputs = loop.body.inputs
        self.indices, found = list[int](), sorted(read)
        while found != self.indices:
            self.indices = found
            outputs = _inside(loop, [loop.body.outputs[i] for i in found])
            used = {id(a) for n in Program([], outputs).body for a in (n, *n.args)}
            carried = (k for k in range(loop.carried) if id(inputs[loop.constants + k]) in used)
            found = sorted({*found, *carried})
        count = sum(i < loop.carried for i in found)
        constants = [at for at in range(loop.constants) if id(inputs[at]) in used]
        self.operands = constants + [loop.constants + k for k in found[:count]]
        self.is_whole = list(map(id, outputs)) == list(map(id, loop.body.outputs))
        body = Program([inputs[at] for at in self.operands], outputs)
        reverse = loop.reverse
        self.loop = Loop(body, loop.counter, loop.count, len(constants), count, reverse)


def _inside(loop: Loop, outputs: Sequence[Node]) -> list[Node]:
    """The same of a round, in which the example is that of the last."""
    w = world()
    known, w.known = w.known, {}
    w.lengths[loop.counter] = w.length(loop.count) - 1
    try:
        return without_unread(outputs)
    finally:
        w.known = known
        w.lengths.pop(loop.counter)
