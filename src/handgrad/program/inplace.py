"""Arrays that may be changed in place: who takes an array over, and who reads it before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from handgrad.program.node import Loop, Node, Selection

#: Nodes that change an array.
CHANGES: Final = ("add_at", "store")
#: Nodes whose arrays may share the memory of their operand.
VIEWS: Final = ("getitem", "reshape", "transpose", "flip", "diagonal", "broadcast_to")


class Takeovers:
    """The statements of a body that change an array in place, since all others read it before.

    `order` is the body with those others before; `by` tells of an array the statement that takes
    it over. owned: arrays from outside the body that may be changed. masks: those of which the
    number that they select is the length of arrays.
    """

    def __init__(
        self,
        body: Sequence[Node],
        outputs: Sequence[Node],
        owned: Collection[int],
        masks: Collection[Selection] = (),
    ) -> None:
        self.by: dict[int, Node] = {}
        self.readers: dict[int, list[Node]] = {}
        self._rank = {id(n): i for i, n in enumerate(body)}
        self._handed = set(map(id, outputs))
        self._before: dict[int, list[Node]] = {}
        self._is_in_order = True
        for n in body:
            for a in {id(a): a for a in n.args}.values():
                self.readers.setdefault(id(a), []).append(n)
        self._count_first(body, masks)
        for n in body:
            for base in _changed(n):
                if id(base) in owned or _is_new(base):
                    self._take(base, n)
        self.order = list(body) if self._is_in_order else self._sorted(body)
        self._rank = {id(n): i for i, n in enumerate(self.order)}

    def _count_first(self, body: Sequence[Node], masks: Collection[Selection]) -> None:
        """Count the elements that a mask selects before an array is made of so many."""
        for mask in masks:
            counted = [a for a in (mask.node, *mask.node.args) if id(a) in self._rank][:1]
            for n in body if counted else ():
                asks = any(mask.letter in size.letters for size in n.shape)
                is_early = asks and self._rank[id(n)] < self._rank[id(counted[0])]
                if is_early and not self._leads(n, counted[0]):
                    self._before.setdefault(id(n), []).extend(counted)
                    self._is_in_order = False

    def _take(self, base: Node, taker: Node) -> None:
        is_single = sum(a is base for a in taker.args) == 1
        if id(base) in self.by or id(base) in self._handed or not is_single:
            return
        others = [r for r in self.readers[id(base)] if r is not taker]
        late = [r for r in others if self._rank[id(r)] > self._rank[id(taker)]]
        if any(self._leads(taker, r) for r in (late if self._is_in_order else others)):
            return
        self.by[id(base)] = taker
        self._before.setdefault(id(taker), []).extend(others)
        self._is_in_order = self._is_in_order and not late

    def _leads(self, first: Node, to: Node) -> bool:
        """Return whether a node, or what has to stand before it, hangs on another one."""
        seen, waiting = {id(to)}, [to]
        while waiting:
            n = waiting.pop()
            if n is first:
                return True
            for a in (*n.args, *self._before.get(id(n), ())):
                if id(a) not in seen:
                    seen.add(id(a))
                    waiting.append(a)
        return False

    def _sorted(self, body: Sequence[Node]) -> list[Node]:
        found: list[Node] = []
        done: set[int] = set()
        for root in body:
            stack = [root]
            while stack:
                n = stack[-1]
                waiting = [
                    a
                    for a in (*n.args, *self._before.get(id(n), ()))
                    if id(a) in self._rank and id(a) not in done
                ]
                if waiting and id(n) not in done:
                    stack += reversed(waiting)
                    continue
                stack.pop()
                if id(n) not in done:
                    done.add(id(n))
                    found.append(n)
        return found

    def late(self) -> dict[int, list[Node]]:
        """By the statement: what is read of an array before, and used afterwards as well."""
        found: dict[int, list[Node]] = {}
        for taker in {id(t): t for t in self.by.values()}.values():
            for base in taker.args:
                if self.by.get(id(base)) is taker:
                    found.setdefault(id(taker), []).extend(self._late(base, taker))
        return found

    def _late(self, base: Node, taker: Node) -> Iterator[Node]:
        above = self._above(taker, self._rank.get(id(base), -1))
        waiting = [r for r in self.readers[id(base)] if r is not taker]
        while waiting:
            n = waiting.pop()
            uses = self.readers.get(id(n), [])
            # A loop goes on reading a view while it changes the array.
            done = above if n.op in VIEWS and taker.op == "loop" else above | {id(taker)}
            if id(n) in self._handed or any(id(u) not in done for u in uses):
                yield n
            if n.op in VIEWS:
                waiting += [u for u in uses if u.op in VIEWS and u is not taker]

    def _above(self, node: Node, lowest: int) -> set[int]:
        """The nodes that lead to one, as far back as a place in the order."""
        seen: set[int] = set()
        waiting = [node]
        while waiting:
            for a in waiting.pop().args:
                if id(a) not in seen and self._rank.get(id(a), -1) > lowest:
                    seen.add(id(a))
                    waiting.append(a)
        return seen


def root(node: Node) -> Node:
    """The array that views of views may share the memory of."""
    while node.op in VIEWS:
        node = node.args[0]
    return node


def _changed(node: Node) -> Iterator[Node]:
    """The arrays that a statement would change in place."""
    if node.op in CHANGES:
        yield node.args[0]
    elif node.op == "loop":
        loop: Loop = node.attrs["loop"]
        for k in range(loop.carried):
            if changes_carried(loop, k):
                yield node.args[loop.constants + k]


def is_filled(node: Node) -> bool:
    """True for an array of one number."""
    is_spread = node.op == "broadcast_to" and node.args[0].op == "const"
    return node.op == "zeros" or (is_spread and not node.args[0].shape)


def _is_new(node: Node) -> bool:
    """Return whether an array is nobody else's."""
    if node.op == "part" and node.args[0].op == "loop":
        loop: Loop = node.args[0].attrs["loop"]
        return node.attrs["index"] >= loop.carried or changes_carried(loop, node.attrs["index"])
    return node.op in CHANGES or is_filled(node)


def last_read(
    node: Node, body: Sequence[Node], stated: Collection[int], outputs: Sequence[Node]
) -> int:
    """The place in the body of the last statement that reads a node.

    stated: the nodes that have a statement at their own place; others stand in their readers'.
    """
    place = {id(n): i for i, n in enumerate(body)}
    readers: dict[int, list[Node]] = {}
    for each in body:
        for operand in each.args:
            readers.setdefault(id(operand), []).append(each)
    handed = set(map(id, outputs))
    seen, waiting, last = {id(node)}, [node], -1
    while waiting:
        each = waiting.pop()
        if id(each) in handed:
            return len(body)
        for reader in readers.get(id(each), []):
            if id(reader) in stated:
                last = max(last, place[id(reader)])
            elif id(reader) not in seen:
                seen.add(id(reader))
                waiting.append(reader)
    return last


def changes_carried(loop: Loop, k: int) -> bool:
    """Return whether the rounds of a loop change a carried array in place."""
    return bool(line_of(loop, k))


def line_of(loop: Loop, k: int) -> list[Node]:
    """The changes in place from a carried array to its next, in order: nodes, or loops' parts.

    There are none where the next is made anew, or handed on as another carried array too.
    """
    carry, result = loop.body.inputs[loop.constants + k], loop.body.outputs[k]
    found: list[Node] = []
    node = result
    while node.op in CHANGES or (node.op == "part" and node.args[0].op == "loop"):
        found.append(node)
        if node.op == "part":
            inner: Loop = node.args[0].attrs["loop"]
            place = node.attrs["index"]
            if place >= inner.carried:
                return []
            node = node.args[0].args[inner.constants + place]
        else:
            node = node.args[0]
    if node is not carry or sum(out is result for out in loop.body.outputs[: loop.carried]) > 1:
        return []
    before = [out for out in loop.body.outputs if out is not carry]
    if any(out is carry for out in loop.body.outputs[: loop.carried]):
        return []
    by = Takeovers(loop.body.body, before, {id(carry)}).by
    bases = [carry, *found[:0:-1]]
    takers = [n.args[0] if n.op == "part" else n for n in reversed(found)]
    is_whole = all(by.get(id(b)) is n for b, n in zip(bases, takers, strict=True))
    return found[::-1] if is_whole else []
