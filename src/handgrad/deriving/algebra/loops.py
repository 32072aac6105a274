"""Loops of a backward: the body is a program, simplified as one; what it reads no longer is not
given to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from handgrad.deriving.algebra.simplifier import Simplifier
from handgrad.deriving.algebra.steps import Simplification
from handgrad.deriving.algebra.values import twin
from handgrad.program.node import Loop, Node, Program, World, build, world


@dataclass
class Loops:
    """The loops of one program, each simplified once."""

    #: Of a loop: it, its new form, and which of its constants that reads.
    _bodies: dict[int, tuple[Node, Loop, list[int]]] = field(default_factory=dict)
    _made: dict[tuple[int, ...], Node] = field(default_factory=dict)

    def simplified(self, algebra: Simplifier, node: Node, operands: Sequence[Node]) -> Node:
        """A loop on new operands, its body in fewer operations."""
        if id(node) not in self._bodies:
            self._bodies[id(node)] = (node, *self._body(algebra, node))
        _, loop, used = self._bodies[id(node)]
        given = [operands[at] for at in used] + list(operands[node.attrs["loop"].constants :])
        key = (id(node), *map(id, given))
        if key not in self._made:
            self._made[key] = build("loop", *given, loop=loop)
        return self._made[key]

    def _body(self, algebra: Simplifier, node: Node) -> tuple[Loop, list[int]]:
        loop: Loop = node.attrs["loop"]
        inputs, w = loop.body.inputs, world()
        given = zip(inputs[: loop.constants], node.args, strict=False)
        adjoints = [inner for inner, outer in given if id(outer) in algebra.flows]
        adjoints += inputs[loop.constants :]
        known, w.known = w.known, {}
        w.lengths[loop.counter] = w.length(loop.count) - 1
        try:
            outputs, steps = self._outputs(algebra, loop, adjoints, w)
        finally:
            w.known = known
            w.lengths.pop(loop.counter)
        algebra.steps += steps
        read = {id(a) for n in Program([], outputs).body for a in (n, *n.args)}
        used = [at for at, inner in enumerate(inputs[: loop.constants]) if id(inner) in read]
        kept = [inputs[at] for at in used] + list(inputs[loop.constants :])
        body = Program(kept, outputs)
        made = Loop(body, loop.counter, loop.count, len(used), loop.carried, loop.reverse)
        return made, used

    def _outputs(
        self, algebra: Simplifier, loop: Loop, adjoints: list[Node], w: World
    ) -> tuple[list[Node], list[Simplification]]:
        """The outputs of a body; what a round adds to a carried array is simplified by itself."""
        body = loop.body
        carried = {id(n) for n in body.inputs[loop.constants :]}
        added: dict[int, tuple[Node, Node]] = {}
        for at, out in enumerate(body.outputs):
            sides = out.args if out.op == "add" else ()
            for carry, more in (sides, sides[::-1]) if sides else ():
                if id(carry) in carried and at not in added:
                    added[at] = (carry, more)
        roots = [added[at][1] if at in added else out for at, out in enumerate(body.outputs)]
        order = Program(body.inputs, roots).body
        own = {id(n) for n in body.inputs}
        other = twin(w, body.inputs, roots, ())
        inner = algebra.inner(own, flowing(order, adjoints), other)
        made, steps = inner.simplified(order, roots)
        outputs = [
            build("add", added[at][0], each) if at in added else each
            for at, each in enumerate(made)
        ]
        for old, new in zip(body.outputs, outputs, strict=True):
            new.take_name(old)
        return outputs, list(steps)


def flowing(body: Sequence[Node], cotangents: Sequence[Node]) -> set[int]:
    """The nodes that cotangents flow into, with these."""
    found = {id(n) for n in cotangents}
    for node in body:
        if any(id(a) in found for a in node.args):
            found.add(id(node))
    return found
