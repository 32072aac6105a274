"""The reverse of a loop: a loop that runs the other way.

Carried adjoints go backwards through the rounds, those of constants add up over them. What a
round's reverse reads of the round is stacked by the forward loop, unless it is cheap to find
again, or has another shape in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from handgrad.deriving.substitution import substituted, wide, widened
from handgrad.program.guards import add_guard, at_both_ends
from handgrad.program.inplace import line_of
from handgrad.program.loop_records import looped
from handgrad.program.node import DTYPES, FIXED, Loop, Node, Program, build, world
from handgrad.program.sizes import Size

Depends = Callable[[Iterable[Node], Iterable[Node | int]], set[int]]
Sweep = Callable[[list[Node], dict[int, Node], set[int]], None]


class LoopReverse:
    """The reverse of one loop node, from the adjoints of its parts.

    before: those of the loop's constants so far, by their numbers, to which the rounds add theirs:
    sums of their own would be as long again, in every round of a loop around this one.
    """

    def __init__(
        self,
        node: Node,
        given: dict[int, Node],
        live: set[int],
        depends: Depends,
        sweep: Sweep,
        before: Mapping[int, Node],
    ) -> None:
        self.node, self.given, self.live, self.before = node, given, live, before
        self.depends, self.sweep = depends, sweep
        self.loop: Loop = node.attrs["loop"]
        body = self.loop.body
        self.constants = body.inputs[: self.loop.constants]
        self.carries = body.inputs[self.loop.constants :]
        self.outputs = body.outputs
        self.order = body.body
        self.active = [
            i for i, c in enumerate(self.constants) if id(node.args[i]) in live and c.kind in "fc"
        ]

    def gradients(self) -> list[Node | None]:
        """The gradients of the loop's operands."""
        loop, nc, nk = self.loop, self.loop.constants, self.loop.carried
        with self._inside():
            self.adjoints = [_adjoint_of(c, np.ones) for c in self.carries]
            self.sums = {i: _adjoint_of(self.constants[i], np.zeros) for i in self.active}
            self.stacks = {
                i: Node("input", (), {}, g.shape, g.kind, g.value, g.name)
                for i, g in self.given.items()
                if i >= nk
            }
            outputs = self._round()
        kept = self._kept(outputs)
        saved = self._saved(kept)
        with self._inside():
            stood = {
                id(n): Node("input", (), {}, s.shape, n.kind, s.value, s.name)
                for n, s in zip(kept, saved, strict=True)
            }
            swap: dict[int, Node] = {}
            for n in kept:
                swap[id(n)] = build("getitem", stood[id(n)], index=(Size.of(loop.counter),))
                swap[id(n)].name = n.name
            constants = [_twin(c) for c in self.constants]
            swap |= {id(c): t for c, t in zip(self.constants, constants, strict=True)}
            outputs = [substituted(o, swap) for o in outputs]
        read = _read(outputs)
        fixed = [
            (inside, outside)
            for inside, outside in zip(
                [*constants, *stood.values(), *self.stacks.values()],
                [*self.node.args[:nc], *saved, *(self.given[i] for i in self.stacks)],
                strict=True,
            )
            if id(inside) in read
        ]
        inputs = [*(n for n, _ in fixed), *self.adjoints, *self.sums.values()]
        back = Loop(
            Program(inputs, outputs),
            loop.counter,
            loop.count,
            len(fixed),
            nk + len(self.sums),
            not loop.reverse,
        )
        operands = [
            *(n for _, n in fixed),
            *(_of_kind(self.given.get(i), c) for i, c in enumerate(self.carries)),
            *(_of_kind(self.before.get(i), self.constants[i]) for i in self.active),
        ]
        parts = looped(back, operands)
        result: list[Node | None] = [None] * nc + list(parts[:nk])
        for i, g in zip(self.active, parts[nk:], strict=True):
            result[i] = g
        return result

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Nodes that are built belong to a round; the example is that of the last."""
        w = world()
        saved, w.known = w.known, {}
        guards, w.guards = w.guards, []
        w.lengths[self.loop.counter] = w.length(self.loop.count) - 1
        try:
            yield
        finally:
            w.lengths.pop(self.loop.counter)
            inside, w.guards, w.known = w.guards, guards, saved
            for g in inside:
                for bound in at_both_ends(g, self.loop.counter, self.loop.count):
                    add_guard(bound)

    def _round(self) -> list[Node]:
        """One round backwards: the carried values' adjoints before it, and the sums after it."""
        roots = [self.constants[i] for i in self.active]
        live = self.depends(self.order, [*roots, *(c for c in self.carries if c.kind in "fc")])
        # What selections of a constant add is added in place to the sum so far.
        adjoint = {id(self.constants[i]): total for i, total in self.sums.items()}
        for i, out in enumerate(self.outputs):
            if id(out) not in live:
                continue
            if i < self.loop.carried:
                g = self.adjoints[i]
            elif i in self.stacks:
                g = build("getitem", self.stacks[i], index=(Size.of(self.loop.counter),))
            else:
                continue
            adjoint[id(out)] = adjoint[id(out)] + g if id(out) in adjoint else g
        self.sweep(self.order, adjoint, live)
        following = [_of_kind(adjoint.get(id(c)), c) for c in self.carries]
        for k in range(len(self.carries)):
            if self._is_filled(k):
                following[k] = self.adjoints[k]
        totals = [adjoint[id(self.constants[i])] for i in self.sums]
        return [*following, *totals]

    def _is_filled(self, k: int) -> bool:
        """True for an array without gradient that rounds fill, each its own: none to clear."""
        carry, result = self.carries[k], self.outputs[k]
        if id(self.node.args[self.loop.constants + k]) in self.live or result.op != "store":
            return False
        readers = sum(any(a is carry or a is result for a in n.args) for n in self.order)
        is_once = sum(out is result for out in self.outputs) == 1
        counted = any(
            isinstance(i, Size) and self.loop.counter in i.letters for i in result.attrs["index"]
        )
        return result.args[0] is carry and readers == 1 and is_once and counted

    def _kept(self, outputs: list[Node]) -> list[Node]:
        """Nodes of the forward's round that its reverse reads and that are not found again."""
        own = set(map(id, [*self.order, *self.carries]))
        cheap, filling = self._cheap(), self._filling()
        kept: list[Node] = []
        seen: set[int] = set()
        stack = list(reversed(outputs))
        while stack:
            n = stack.pop()
            if id(n) in seen or n.op in FIXED:
                continue
            seen.add(id(n))
            if n.op == "part" and id(n) in own and id(n) not in cheap:
                kept.append(n)
                continue
            ragged = any(self.loop.counter in s.letters for s in n.shape)
            if n.op == "part" and id(n.args[0]) in filling and not ragged:
                kept.append(n)
                continue
            inner = n.op == "part" and id(n.args[0]) in own
            if (id(n) not in own and not inner) or (id(n) in cheap) or (ragged and n.op != "input"):
                stack += reversed(n.args)
            else:
                kept.append(n)
        return kept

    def _filling(self) -> set[int]:
        """The wide forms of loops inside that change an array of this one in place.

        What they stack has as many elements as they have operations; the array itself, as it was
        before each round, has more.
        """
        return {
            id(wide(change, world()).args[0])
            for k in range(self.loop.carried)
            for change in line_of(self.loop, k)
            if change.op == "part"
        }

    def _cheap(self) -> set[int]:
        """Nodes found again rather than kept: what is made of constants and the counter alone."""
        known = set(map(id, self.constants))
        for n in self.order:
            if n.op not in ("contract", "loop", "part", "input", *FIXED) and all(
                a.op in FIXED or id(a) in known for a in n.args
            ):
                known.add(id(n))
        return known - set(map(id, self.constants))

    def _saved(self, kept: list[Node]) -> list[Node]:
        """Stacks of what is kept, from the forward's loop, which is told to stack it too."""
        loop, nk = self.loop, self.loop.carried
        stacked = set(map(id, loop.body.outputs[nk:]))
        extra = [n for n in kept if id(n) not in stacked]
        outputs = [*loop.body.outputs, *extra]
        with self._inside():
            body = Program(loop.body.inputs, widened(outputs, world()))
        whole = Loop(body, loop.counter, loop.count, loop.constants, nk, loop.reverse)
        parts = looped(whole, list(self.node.args))
        self._widen(parts)
        place = {id(n): i for i, n in enumerate(outputs) if i >= nk}
        saved = [parts[place[id(n)]] for n in kept]
        carried = set(map(id, self.carries))
        for n, stack in zip(kept, saved, strict=True):
            if n.name:
                end = "_before" if id(n) in carried else "_all" * (not n.name.endswith("_all"))
                stack.name = stack.name or n.name + end
        return saved

    def _widen(self, parts: list[Node]) -> None:
        """Notes the loop's wide form, and lets those of later loops read from it too."""
        w = world()
        for later, old in w.wide.items():
            swap = {
                id(n): parts[n.attrs["index"]]
                for n in Program([], old).body
                if n.op == "part" and n.args[0] is self.node
            }
            w.wide[later] = [substituted(part, swap) for part in old] if swap else old
        w.wide[id(self.node)] = parts


def _read(outputs: list[Node]) -> set[int]:
    """The nodes that outputs are or are made of."""
    return set(map(id, Program([], outputs).body))


def _adjoint_of(node: Node, example: Callable[[Any, Any], Any]) -> Node:
    """Stands in a round for the adjoint of a node."""
    name = f"d{node.name}" if node.name else ""
    kind = "c" if node.kind == "c" else "f"
    value = example(np.shape(node.value), DTYPES[kind])
    return Node("input", (), {}, node.shape, kind, value, name)


def _twin(node: Node) -> Node:
    return Node("input", (), {}, node.shape, node.kind, node.value, node.name)


def _of_kind(adjoint: Node | None, like: Node) -> Node:
    """An adjoint, 0 where there is none; of a complex value, one that is complex in each round."""
    if like.kind != "c":
        return adjoint or build("zeros", shape=like.shape)
    if adjoint is None:
        return build("zeros", shape=like.shape, kind="c")
    return adjoint if adjoint.kind == "c" else build("astype", adjoint, kind="c")
