"""Rounds that are alike become one loop node.

The trace holds every round written out, between marks. Rounds whose nodes are the same, up to the counter and to values of
the round before, are rolled up; first and last rounds that differ are peeled; what is not alike stays written out, and a guard
holds the count. Then everything is built again, with equal nodes as one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from handgrad.program.node import (
    PRIMITIVES,
    Loop,
    Node,
    Primitive,
    Program,
    as_node,
    build,
    world,
)
from handgrad.program.sizes import ONE, Size
from handgrad.program.trace import Mark


@dataclass
class Trip:
    """A loop as it was traced: a list of items for each round; an item is a node or a trip."""

    letter: str
    count: Size
    depth: int
    rounds: list[list] = field(default_factory=list)


def tree(events):
    """Events as nested trips."""
    root: list = []
    open_: list[Trip] = []
    for e in events:
        if not isinstance(e, Mark):
            (open_[-1].rounds[-1] if open_ else root).append(e)
        elif e.what == "enter":
            open_.append(Trip(e.letter, e.count, len(open_)))
        elif e.what == "round":
            open_[-1].rounds.append([])
        else:
            done = open_.pop()
            (open_[-1].rounds[-1] if open_ else root).append(done)
    return root


def flat(items):
    for item in items:
        if isinstance(item, Trip):
            for r in item.rounds:
                yield from flat(r)
        else:
            yield item


class Rebuild:
    """Builds the nodes of a trace again, trips as loops; `new` maps a traced node to what it became.

    `escapes` tells of a node which of the loops around it, by depth, it is read outside of; `of_round` of what a node of a
    finished loop is an element: the stack, its round, their number."""

    def __init__(self, escapes):
        self.new: dict[int, Node] = {}
        self.escapes = escapes
        self.of_round: dict[int, tuple] = {}

    def node(self, old: Node, letters) -> Node:
        if old.op in ("const", "table", "size", "input"):
            if old.op == "size" and letters:
                return as_node(old.attrs["size"].at(letters))
            return self.new.get(id(old), old)
        return self.new[id(old)]

    def items(self, items, letters):
        for item in items:
            if isinstance(item, Trip):
                self.trip(item, letters)
            else:
                made = self.joined(item, letters) or build(
                    item.op,
                    *(self.node(a, letters) for a in item.args),
                    **{k: replaced(v, letters) for k, v in item.attrs.items()},
                )
                made.name, made.line = made.name or item.name, made.line or item.line
                self.new[id(item)] = made

    def joined(self, item: Node, letters) -> Node | None:
        """A pile or concatenation of what all rounds of a loop made, as the loop's stack."""
        if item.op not in ("pile", "concatenate"):
            return None
        parts, at = [], 0
        while at < len(item.args):
            stack, i, n = self.of_round.get(id(item.args[at]), (None, 0, 0))
            run = [self.of_round.get(id(a)) for a in item.args[at : at + n]]
            whole = [(stack, k, n) for k in range(n)]
            if stack is not None and run in (whole, whole[::-1]):
                parts.append((stack if run == whole else build("flip", stack, axis=(0,)), True))
                at += n
            else:
                parts.append((self.node(item.args[at], letters), False))
                at += 1
        if not any(whole for _, whole in parts):
            return None
        if item.op == "pile":
            pieces = [
                p if whole else build("reshape", p, shape=(ONE, *p.shape)) for p, whole in parts
            ]
            axis = 0
        else:
            axis = item.attrs["axis"]
            pieces = []
            for p, whole in parts:
                if whole:
                    order = list(range(1, p.ndim))
                    order.insert(axis, 0)
                    p = build("transpose", p, axes=tuple(order))
                    p = build(
                        "reshape",
                        p,
                        shape=p.shape[:axis]
                        + (p.shape[axis] * p.shape[axis + 1],)
                        + p.shape[axis + 2 :],
                    )
                pieces.append(p)
        return build("concatenate", *pieces, axis=axis)

    def trip(self, trip: Trip, letters):
        n = len(trip.rounds)
        w = world()
        count = trip.count.at(letters)
        for first in range(min(3, n)):
            for last in range(min(2, n - first)):
                if (
                    n - first - last >= 2
                    and (plan := alike(trip.rounds[first : n - last])) is not None
                ):
                    for i in range(first):
                        self.items(trip.rounds[i], {**letters, trip.letter: Size.of(i)})
                    self.roll(
                        trip,
                        trip.rounds[first : n - last],
                        plan,
                        first,
                        count - first - last,
                        letters,
                    )
                    for i in range(n - last, n):
                        self.items(trip.rounds[i], {**letters, trip.letter: count - (n - i)})
                    return
        if count.constant is None:
            w.guards.append(("==", count, Size.of(n), True))
        for i, r in enumerate(trip.rounds):
            self.items(r, {**letters, trip.letter: Size.of(i)})

    def roll(self, trip, rounds, plan, first, count, letters):
        """One loop node for rounds that are alike."""
        w = world()
        n = len(rounds)
        nodes = [list(flat(r)) for r in rounds]
        last = nodes[-1]
        letter = trip.letter if trip.letter not in w.lengths else trip.letter + "_"
        plan, starts = plan
        constants, carried, initial = [], sorted(starts), []
        for j in range(len(last)):  # what escapes from a loop inside in any round does in the last
            deeper = {d for r in nodes for d in self.escapes.get(id(r[j]), ()) if d > trip.depth}
            if deeper:
                self.escapes[id(last[j])] = self.escapes.get(id(last[j]), set()) | deeper
        inner = Rebuild(self.escapes)
        scope = {**letters, trip.letter: Size.of(letter) + first}
        inputs: dict[int, Node] = {}

        def given(old):
            outer = self.node(old, letters)
            if outer.op in ("const", "table", "size"):
                return outer
            if id(outer) not in inputs:
                inputs[id(outer)] = Node(
                    "input", (), {}, outer.shape, outer.kind, outer.value, outer.name
                )
                constants.append(outer)
            return inputs[id(outer)]

        # what a round takes from before it: constants, and carried values, whose value on the example is the last round's
        carry_in = {}
        for j, d in carried:
            start = self.node(starts[j, d], letters)
            now = nodes[-1 - d][j] if d < n else start
            carry_in[j, d] = Node(
                "input", (), {}, last[j].shape, last[j].kind, now.value, last[j].name
            )
            if tuple(start.shape) != tuple(last[j].shape):
                start = build(
                    "broadcast_to", start, shape=tuple(replaced(s, letters) for s in last[j].shape)
                )
            initial.append(start)
        saved = w.known
        w.known = {}
        w.lengths[letter] = n - 1
        w.counters[letter] = count
        local = set(map(id, last))
        before = {
            id(r[j]): (j, d) for d in range(1, n) for r in [nodes[-1 - d]] for j in range(len(r))
        }
        for node in last:
            for a in node.args:
                if id(a) in local or a.op in ("const", "table", "size"):
                    continue
                if before.get(id(a)) in carry_in:
                    inner.new[id(a)] = carry_in[before[id(a)]]
                elif id(a) not in inner.new:
                    inner.new[id(a)] = given(a)
        inner.items(rounds[-1], scope)
        position = {id(node): (i, j) for i, r in enumerate(nodes) for j, node in enumerate(r)}
        used = {(i, j) for k, (i, j) in position.items() if trip.depth in self.escapes.get(k, ())}
        stacked = sorted({j for i, j in used if i < n - 1 or (j, 1) not in carried})
        outputs = [inner.new[id(last[j])] if d == 1 else carry_in[j, d - 1] for j, d in carried] + [
            inner.new[id(last[j])] for j in stacked
        ]
        body = Program([*inputs.values(), *carry_in.values()], outputs)
        w.known = saved
        w.lengths.pop(letter)
        parts = looped(
            Loop(body, letter, count, len(constants), len(carried)), [*constants, *initial]
        )
        finals = {j: p for (j, d), p in zip(carried, parts) if d == 1}
        stacks = dict(zip(stacked, parts[len(carried) :]))
        for j, p in [*finals.items(), *stacks.items()]:
            p.name = (
                last[j].name + ("" if j in finals and p is finals[j] else "_all")
                if last[j].name
                else ""
            )
        for i, j in used:
            if j in stacks:
                self.of_round[id(nodes[i][j])] = (stacks[j], i, n)
            self.new[id(nodes[i][j])] = (
                finals[j]
                if i == n - 1 and j in finals
                else build("getitem", stacks[j], index=(Size.of(i) if i < n - 1 else count - 1,))
            )


def replaced(attr, letters):
    if isinstance(attr, Size):
        return attr.at(letters)
    if isinstance(attr, (tuple, list)):
        return type(attr)(replaced(a, letters) for a in attr)
    if isinstance(attr, slice):
        return slice(*(replaced(p, letters) for p in (attr.start, attr.stop, attr.step)))
    return attr


def alike(rounds):
    """For each operand of a round: local, constant, or carried from the round before; None where the rounds differ."""
    nodes = [list(flat(r)) for r in rounds]
    n = len(nodes)
    if len({len(r) for r in nodes}) > 1 or len({skeleton(r) for r in rounds}) > 1:
        return None
    position = {id(node): (i, j) for i, r in enumerate(nodes) for j, node in enumerate(r)}
    plan, starts = [], {}
    for j in range(len(nodes[0])):
        column = [r[j] for r in nodes]
        if len({(c.op, repr(sorted(c.attrs.items(), key=str)), str(c.shape)) for c in column}) > 1:
            return None
        for k in range(len(column[0].args)):
            refs = [position.get(id(c.args[k])) for c in column]
            here = {r[1] if r is not None and r[0] == i else None for i, r in enumerate(refs)}
            if None not in here and len(here) == 1:
                plan.append(("local", here.pop()))
                continue
            if all(
                c.args[k] is column[0].args[k] or same_constant(c.args[k], column[0].args[k])
                for c in column
            ):
                plan.append(("constant", None))
                continue
            back = {(i - r[0], r[1]) for i, r in enumerate(refs) if r is not None}
            if (
                len(back) == 1
                and (d := min(back)[0]) > 0
                and all((r is None) == (i < d) for i, r in enumerate(refs))
            ):
                j = min(back)[1]
                for m in range(1, d + 1):  # in the first round, the value of m rounds before
                    start = column[d - m].args[k]
                    if not same_start(starts.setdefault((j, m), start), start):
                        return None
                plan.append(("carried", (j, d)))
                continue
            return None
    return plan, starts


def same_start(a, b):
    return a is b or same_constant(a, b)


def same_constant(a, b):
    return a.op == b.op and a.op in ("const", "size") and repr(a.attrs) == repr(b.attrs)


def skeleton(items):
    return tuple(
        (i.letter, str(i.count), tuple(map(skeleton, i.rounds))) if isinstance(i, Trip) else "·"
        for i in items
    )


# The loop as a primitive: evaluation runs the body, its shape is that of its parts.
def evaluate(*values, loop, lengths=None):
    from handgrad.program.run import run_loop

    return run_loop(loop, values, dict(world().lengths))


PRIMITIVES["loop"] = Primitive(
    "loop", lambda *values, loop: evaluate(*values, loop=loop), lambda *nodes, loop: ((), "f")
)


def part_shape(node, index):
    if (parts := PRIMITIVES[node.op].parts) is not None:
        return parts(*node.args, **node.attrs)[index]
    loop = node.attrs["loop"]
    out = loop.body.outputs[index]
    return (out.shape if index < loop.carried else (loop.count, *out.shape)), out.kind


PRIMITIVES["part"] = Primitive("part", lambda value, index: value[index], part_shape)


def looped(loop: Loop, operands) -> list[Node]:
    node = build("loop", *operands, loop=loop)
    return [build("part", node, index=i) for i in range(len(loop.body.outputs))]


# A pile is a stack along a new first axis; the trace keeps it, so that the rounds of a loop can be told in it.
def pile_shape(*xs):
    rounds = [x.round for x in xs]
    if None not in rounds and len({r[0] for r in rounds}) == 1:
        count, n = world().counts[rounds[0][0]]
        order = [r[1] for r in rounds]
        if order in (list(range(n)), list(range(n))[::-1]):
            return (count, *xs[0].shape), xs[0].kind
    return (Size.of(len(xs)), *xs[0].shape), xs[0].kind


PRIMITIVES["pile"] = Primitive(
    "pile",
    lambda *xs: np.stack(xs),
    pile_shape,
    lambda g, y, *xs: tuple(build("getitem", g, index=(Size.of(i),)) for i in range(len(xs))),
    lambda e, n: f"np.stack(({', '.join(map(e.arg, n.args))},))",
)
