"""Rounds that are alike become one loop node.

The trace holds every round written out, between events. Rounds whose nodes are the same, up to the
counter and to values of rounds before, are rolled up; first and last rounds that differ are
peeled; what is not alike stays written out, and a guard holds the count. Then everything is built
again, with equal nodes as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from handgrad.program.guards import add_guard, at_both_ends
from handgrad.program.likeness import Item, Place, RoundDifferences, Trip, alike, flat
from handgrad.program.loop_records import looped
from handgrad.program.node import (
    FIXED,
    LEAVES,
    Loop,
    Node,
    Program,
    as_node,
    build,
    replaced,
    world,
)
from handgrad.program.rounds import is_few
from handgrad.program.sizes import ONE, Size
from handgrad.program.trips import escaping, tree

__all__ = ["Rebuild", "Trip", "escaping", "flat", "looped", "rolled", "tree"]

Letters: TypeAlias = Mapping[str, Size | int]
_VIEWS = ("reshape", "transpose")
_PEELED_FIRST, _PEELED_LAST = 3, 2  # one more than may differ at the start and at the end


def rolled(outputs: list[Node]) -> list[Node]:
    """The outputs of a trace, which ends here, built again with its loops rolled up."""
    w = world()
    events, w.events = w.events or [], None
    # Those of shapes are made again with the nodes.
    w.guards = [g for g in w.guards if g[0] not in ("==", "<=")]
    items = tree(events)
    rebuild = Rebuild(escaping(items, outputs))
    rebuild.items(items, {})
    for key, each in w.masks.items():
        w.masks[key] = each._replace(node=rebuild.new.get(id(each.node), each.node))
    return [rebuild.node(node, {}) for node in outputs]


class Rebuild:
    """Builds the nodes of a trace again, trips as loops.

    `new` maps a traced node to what it became; `escapes` tells of a node which of the loops around
    it, by depth, it is read outside of; `places` of what a node of a finished loop is an element;
    `checks` are conditions inside a loop's body and their outcomes.
    """

    def __init__(self, escapes: dict[int, set[int]], depth: int = 0) -> None:
        self.new: dict[int, Node] = {}
        self.escapes = escapes
        self.depth = depth
        self.places: dict[int, Place] = {}
        self.checks: list[tuple[Node, bool]] = []
        #: In a loop: a view of arrays from outside as an input, None for what is no such view.
        self.lift: Callable[[Node], Node | None] = lambda node: None
        self._likeness = RoundDifferences()
        self._read: dict[int, set[int]] = {}

    def node(self, old: Node, letters: Letters) -> Node:
        """What a traced node became."""
        if id(old) in self.places:
            self._alone(*self.places[id(old)])
        if old.op == "size":
            return as_node(old.attrs["size"].at(letters))
        return self.new.get(id(old), old) if old.op in LEAVES else self.new[id(old)]

    def _alone(self, stack: Node, i: int, total: int) -> None:
        """One round's value is read by its number: one in the middle holds the count."""
        read = self._read.setdefault(id(stack), set())
        read.add(i)
        if 2 <= i < total - 2 or len(read) == total:
            self.bound("__eq__", stack.shape[0], Size.of(total), True)

    def items(self, items: list[Item], letters: Letters) -> None:
        for item in items:
            if isinstance(item, Trip):
                self.trip(item, letters)
            elif item.op == "guard":
                self._guard(item, letters)
            else:
                self._item(item, letters)

    def _item(self, item: Node, letters: Letters) -> None:
        made = self.joined(item, letters)
        if made is None:
            attrs = self._likeness.attrs.get(id(item), item.attrs)
            operands = [self._operand(item, k, letters) for k in range(len(item.args))]
            if item.op == "getitem":  # whose gradient is then added to in place, round by round
                operands[0] = self.lift(operands[0]) or operands[0]
            attrs = {k: replaced(v, letters) for k, v in attrs.items()}
            made = build(item.op, *operands, **attrs)
        made.name, made.line = made.name or item.name, made.line or item.line
        world().signatures.stand(made, item)
        self.new[id(item)] = made

    def _operand(self, item: Node, k: int, letters: Letters) -> Node:
        key = id(item), k
        if key in self._likeness.sizes:
            return as_node(self._likeness.sizes[key].at(letters))
        if key in self._likeness.elements:
            stack, index = self._likeness.elements[key]
            return build("getitem", self.new.get(id(stack), stack), index=(index.at(letters),))
        return self.node(item.args[k], letters)

    def _guard(self, item: Node, letters: Letters) -> None:
        attrs = replaced_guard(self._likeness.attrs.get(id(item), item.attrs), letters)
        if item.args:
            self.check(self.node(item.args[0], letters), attrs["outcome"])
        else:
            self.bound(attrs["relation"], attrs["left"], attrs["right"], attrs["outcome"])

    def check(self, node: Node, outcome: bool) -> None:
        """Notes a condition on values, which the emitted function checks."""
        if self.depth:
            self.checks.append((node, outcome))
        elif node.op != "const":
            add_guard(("true", node, None, outcome))

    def bound(self, relation: str, left: Size, right: Size, outcome: bool) -> None:
        """Notes a condition on sizes."""
        if (left - right).constant is None:
            add_guard((relation, left, right, outcome))

    def joined(self, item: Node, letters: Letters) -> Node | None:
        """A pile or concatenation of what rounds of a loop made, from the loop's stack."""
        if item.op not in ("pile", "concatenate"):
            return None
        pieces: list[tuple[Node, bool]] = []  # with True for a stack of rounds
        at = 0
        while at < len(item.args):
            end, stack = self._stretch(item.args, at)
            if stack is None:
                pieces.append((self._operand(item, at, letters), False))
            else:
                pieces.append((stack, True))
            at = end
        if not any(whole for _, whole in pieces):
            return None
        if item.op == "pile":
            rows = [p if w else build("reshape", p, shape=(ONE, *p.shape)) for p, w in pieces]
            return build("concatenate", *rows, axis=0)
        axis = item.attrs["axis"]
        along = [_merged(p, axis) if whole else p for p, whole in pieces]
        return build("concatenate", *along, axis=axis)

    def _stretch(self, args: Sequence[Node], at: int) -> tuple[int, Node | None]:
        """The end of the rounds of one loop that follow each other, and their part of its stack."""
        first = self.places.get(id(args[at]))
        if first is None:
            return at + 1, None
        stack, start, total = first
        for step in (1, -1):
            end = at + 1
            while end < len(args):
                place = self.places.get(id(args[end]))
                if place is None or place[0] is not stack or place[1] != start + step * (end - at):
                    break
                end += 1
            if end > at + 1 and not is_few(end - at, total):
                low, high = sorted((start, start + step * (end - at - 1)))
                if (low, high) != (0, total - 1):
                    stop = stack.shape[0] - (total - 1 - high) if high < total - 1 else None
                    part = slice(Size.of(low) if low else None, stop, None)
                    stack = build("getitem", stack, index=(part, *_all(stack.ndim - 1)))
                return end, stack if step == 1 else build("flip", stack, axis=(0,))
        return at + 1, None

    def trip(self, trip: Trip, letters: Letters) -> None:
        """A traced loop: rolled up where its rounds are alike, else written out."""
        n = len(trip.rounds)
        count = trip.count.at(letters)
        for first in range(min(_PEELED_FIRST, n)):
            for last in range(min(_PEELED_LAST, n - first)):
                middle = trip.rounds[first : n - last]
                if len(middle) < 2:
                    continue
                likeness = alike(middle, trip.letter, first, self.places, self._likeness)
                if likeness is None or self._ragged(trip, middle, likeness):
                    continue
                for i in range(first):
                    self.items(trip.rounds[i], {**letters, trip.letter: Size.of(i)})
                rolling = Rolling(self, trip, middle, likeness, first, letters)
                after = {
                    id(a) for r in trip.rounds[n - last :] for node in flat(r) for a in node.args
                }
                rolling.roll(count - first - last, after)
                for i in range(n - last, n):
                    self.items(trip.rounds[i], {**letters, trip.letter: count - (n - i)})
                return
        self.bound("__eq__", count, Size.of(n), True)
        for i, r in enumerate(trip.rounds):
            self.items(r, {**letters, trip.letter: Size.of(i)})

    def _ragged(self, trip: Trip, rounds: list[list[Item]], likeness: RoundDifferences) -> bool:
        """True where what a round hands on has another shape in each, or is a list of rounds."""
        nodes = [list(flat(r)) for r in rounds]
        counts = world().counts
        for j, _ in likeness.starts:
            inside = nodes[-1][j].rounds[trip.depth + 1 :]
            if any(i < counts[number][1] - 1 for number, i in inside):
                return True  # as many values as a loop inside has rounds
        handed = {j for j, _ in likeness.starts} | {
            j
            for r in nodes
            for j, node in enumerate(r)
            if trip.depth in self.escapes.get(id(node), ())
        }
        return any(trip.letter in s.letters for j in handed for s in nodes[-1][j].shape)


class Rolling:
    """One loop node for rounds that are alike, in the place of the rounds."""

    def __init__(
        self,
        outer: Rebuild,
        trip: Trip,
        rounds: list[list[Item]],
        likeness: RoundDifferences,
        first: int,
        letters: Letters,
    ) -> None:
        w = world()
        self.outer, self.trip, self.rounds, self.likeness = outer, trip, rounds, likeness
        self.letters = letters
        self.nodes = [list(flat(r)) for r in rounds]
        self.last = self.nodes[-1]
        self.letter = trip.letter + "_" * (trip.letter in w.lengths)
        self.scope = {**letters, trip.letter: Size.of(self.letter) + first}
        self.constants: list[Node] = []  # outside
        self.inputs: dict[int, Node] = {}  # inside, by what they stand for
        self.inner = Rebuild(outer.escapes, outer.depth + 1)
        self.inner._likeness = likeness
        self.inner.lift = self._lifted
        self._known = w.known

    def roll(self, count: Size, after: set[int]) -> None:
        """Builds the loop; `after` are nodes that last rounds, written out, read."""
        w = world()
        n = len(self.rounds)
        carried = sorted(self.likeness.starts)
        self._share_escapes()
        first = [self._start(*key) for key in carried]
        carry_in = {key: self._carried(*key) for key in carried}
        saved, w.known = w.known, {}
        w.lengths[self.letter] = n - 1
        w.counters[self.letter] = count
        guards, w.guards = w.guards, []
        self._give(carry_in)
        self.inner.items(self.rounds[-1], self.scope)
        used = self._used(after)
        stacked = sorted({j for i, j in used if i < n - 1 or (j, 1) not in carry_in})
        new = self.inner.new
        following = [new[id(self.last[j])] if d == 1 else carry_in[j, d - 1] for j, d in carried]
        outputs = following + [self.inner.node(self.last[j], self.scope) for j in stacked]
        outputs += [node for node, _ in self.inner.checks]
        w.known = saved
        w.lengths.pop(self.letter)
        inside, w.guards = w.guards, guards
        for g in inside:
            for bound in at_both_ends(g, self.letter, count):
                add_guard(bound)
        read = set(map(id, Program([], outputs).body))
        pairs = zip(self.inputs.values(), self.constants, strict=True)
        given = [(node, outer) for node, outer in pairs if id(node) in read]
        body = Program([*(node for node, _ in given), *carry_in.values()], outputs)
        loop = Loop(body, self.letter, count, len(given), len(carried))
        parts = looped(loop, [*(outer for _, outer in given), *first])
        self._hand_out(carried, stacked, parts, used, count)
        checked = parts[len(carried) + len(stacked) :]
        for (_, outcome), stack in zip(self.inner.checks, checked, strict=True):
            every = "all" if outcome else "any"
            axes = tuple(range(stack.ndim))
            self.outer.check(build(every, stack, axis=axes, keepdims=False), outcome)

    def _share_escapes(self) -> None:
        """Notes that what escapes from a loop inside in any round does so in the last."""
        escapes = self.outer.escapes
        for j, node in enumerate(self.last):
            deeper = {
                d for r in self.nodes for d in escapes.get(id(r[j]), ()) if d > self.trip.depth
            }
            if deeper:
                escapes[id(node)] = escapes.get(id(node), set()) | deeper

    def _start(self, j: int, d: int) -> Node:
        """The first of a carried value, in the shape that it has in all rounds."""
        start = self.outer.node(self.likeness.starts[j, d], self.letters)
        shape = tuple(s.at(self.letters) for s in self.last[j].shape)
        if start.shape == shape:
            return start
        if start.op == "const" and start.attrs["value"] == 0:
            return build("zeros", shape=shape)
        return build("broadcast_to", start, shape=shape)

    def _carried(self, j: int, d: int) -> Node:
        """Stands in the body for a carried value; its example is that of the last round."""
        node = self.last[j]
        now = self.nodes[-1 - d][j] if d < len(self.nodes) else self.likeness.starts[j, d]
        return Node("input", (), {}, node.shape, node.kind, now.value, node.name)

    def _give(self, carry_in: dict[tuple[int, int], Node]) -> None:
        """Inputs of the body for all that a round reads from outside it."""
        local = set(map(id, self.last))
        carried = {
            id(self.nodes[-1 - d][j]): node
            for (j, d), node in carry_in.items()
            if d < len(self.nodes)
        }
        for node in self.last:
            for k, a in enumerate(node.args):
                key = id(node), k
                if key in self.likeness.elements:
                    stack, _ = self.likeness.elements[key]
                    here = self.outer.new.get(id(stack), stack)
                    self.inner.new.setdefault(id(stack), self._given(here))
                elif key in self.likeness.sizes or id(a) in local or a.op in FIXED:
                    continue
                elif id(a) in carried:
                    self.inner.new[id(a)] = carried[id(a)]
                elif id(a) not in self.inner.new:
                    self.inner.new[id(a)] = self._given(self.outer.node(a, self.letters))

    def _given(self, outer: Node) -> Node:
        if outer.op in FIXED:
            return outer
        if id(outer) not in self.inputs:
            self.inputs[id(outer)] = Node(
                "input", (), {}, outer.shape, outer.kind, outer.value, outer.name
            )
            self.constants.append(outer)
        return self.inputs[id(outer)]

    def _lifted(self, node: Node) -> Node | None:
        """A view of arrays from outside the loop as an input of its body, made there once."""
        outer = self._outside(node) if node.op in _VIEWS else None
        return None if outer is None else self._given(self.outer.lift(outer) or outer)

    def _outside(self, node: Node) -> Node | None:
        for given, outer in zip(self.inputs.values(), self.constants, strict=True):
            if node is given:
                return outer
        letters = {x for s in node.shape for x in s.letters}
        if node.op not in _VIEWS or self.letter in letters:
            return None
        below = self._outside(node.args[0])
        if below is None:
            return None
        w = world()
        inside, w.known = w.known, self._known
        try:
            return build(node.op, below, **node.attrs)
        finally:
            w.known = inside

    def _used(self, after: set[int]) -> set[tuple[int, int]]:
        """Rounds and places of the nodes that are read outside the loop."""
        return {
            (i, j)
            for i, r in enumerate(self.nodes)
            for j, node in enumerate(r)
            if id(node) in after or self.trip.depth in self.outer.escapes.get(id(node), ())
        }

    def _hand_out(
        self,
        carried: list[tuple[int, int]],
        stacked: list[int],
        parts: list[Node],
        used: set[tuple[int, int]],
        count: Size,
    ) -> None:
        """What is read of the rounds, from the loop's parts."""
        n = len(self.rounds)
        finals = {j: p for (j, d), p in zip(carried, parts, strict=False) if d == 1}
        stacks = dict(zip(stacked, parts[len(carried) :], strict=False))
        for j, p in finals.items():
            p.name = p.name or self.last[j].name
        for j, p in stacks.items():
            if self.last[j].name:
                p.name = p.name or self.last[j].name + "_all"
        for i, j in used:
            node = self.nodes[i][j]
            if i == n - 1 and j in finals:
                self.outer.new[id(node)] = finals[j]
            else:
                place = Size.of(i) if i < n - 1 and i < 2 else count - (n - i)
                self.outer.new[id(node)] = build("getitem", stacks[j], index=(place,))
            if j in stacks:
                self.outer.places[id(node)] = (stacks[j], i, n)


def replaced_guard(attrs: dict[str, Any], letters: Letters) -> dict[str, Any]:
    return {k: replaced(v, letters) for k, v in attrs.items()}


def _merged(stack: Node, axis: int) -> Node:
    """A stack of pieces as their concatenation along one of their axes."""
    order = list(range(1, stack.ndim))
    order.insert(axis, 0)
    turned = build("transpose", stack, axes=tuple(order))
    sizes = turned.shape
    shape = (*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2 :])
    return build("reshape", turned, shape=shape)


def _all(axes: int) -> tuple[slice, ...]:
    return (slice(None),) * axes
