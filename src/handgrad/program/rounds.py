"""Rounds of loops, marked among the events of a trace; and guards, which are events too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from opcode import opname
from typing import Any

from handgrad.program.node import Node, World, world
from handgrad.program.sizes import Size


@dataclass(frozen=True)
class Mark:
    """The start of a loop, of one of its rounds, or its end, among the events of a trace."""

    what: str  # enter, round or exit
    letter: str
    count: Size | None = None
    whole: bool = True  # of an end: the loop was not left early


def guard(relation: str, left: Any, right: Any, outcome: bool) -> None:
    """Notes an outcome that the forward went by; the emitted function checks it."""
    w = world()
    if isinstance(left, Node) and not w.has_numbers:
        w.refuse("what comes next hangs on a value")
    if w.events is None:
        w.guards.append((relation, left, right, outcome))
        return
    attrs = {"relation": relation, "left": left, "right": right, "outcome": outcome}
    args: tuple[Node, ...] = ()
    if isinstance(left, Node):
        args, attrs["left"] = (left,), None
    rounds_now = tuple(w.open)
    w.events.append(Node("guard", args, attrs, (), "b", outcome, line=w.line, rounds=rounds_now))


def fixed(size: Size | int) -> int:
    """The number of a size, which is the same from now on: the emitted function checks it."""
    w = world()
    size = Size.of(size)
    value = w.length(size)
    # A counter's number differs between rounds, which are told apart by what they do with it.
    if size.constant is None and size.letters.isdisjoint(w.counters):
        guard("__eq__", size, Size.of(value), True)
    return value


def settled(size: Size, born: tuple[tuple[int, int], ...]) -> Size:
    """A size that was made in some rounds, in those that the trace is in now."""
    w = world()
    for depth, (number, i) in reversed(list(enumerate(born))):
        letter = f"t{depth}"
        now = w.open[depth] if depth < len(w.open) else (-1, -1)
        if letter not in size.letters or now == (number, i):
            continue
        count, total = w.counts[number]  # in the letters of the rounds around it, which come next
        if now[0] == number:
            value: Size | int = Size.of(letter) - (now[1] - i)
        elif i == total - 1:
            value = count - 1
        else:
            value = i
            fixed(settled(count, born[:depth]))
        size = size.at({letter: value})
    return size


def rounds(count: Size | int, element: Callable[[Size], Any]) -> Iterator[Any]:
    """The rounds of a loop, marked; `element` makes the loop's variable from the counter."""
    w = world()
    if w.events is None:
        raise RuntimeError("a loop over traced values outside a trace")
    count = Size.of(count)
    letter = f"t{len(w.open)}"
    number = len(w.counts)
    total = w.length(count)
    w.counts[number] = count, total
    w.counters[letter] = count
    w.events.append(Mark("enter", letter, count))
    w.open.append((number, -1))
    depth = len(w.open)
    whole = False
    try:
        for i in range(total):
            if len(w.open) < depth or w.open[depth - 1][0] != number:
                w.refuse("a loop goes on after one around it has ended")
            if len(w.open) > depth:
                w.refuse("two loops go on in turn; write zip of both")
            w.lengths[letter] = i
            w.open[-1] = (number, i)
            w.events.append(Mark("round", letter))
            yield element(Size.of(letter))
        whole = True
    finally:
        _leave(w, number, whole)


def _leave(w: World, number: int, whole: bool) -> None:
    """Marks the end of a loop, and of those inside that were left with it.

    A refusal keeps the generator, which then ends after its trace.
    """
    if w.events is None or all(n != number for n, _ in w.open):
        return
    while True:
        last, _ = w.open.pop()
        letter = f"t{len(w.open)}"
        w.events.append(Mark("exit", letter, whole=whole and last == number))
        w.lengths.pop(letter, None)
        if last == number:
            return


@contextmanager
def within_round(now: tuple[tuple[int, int], ...]) -> Iterator[None]:
    """A block for what belongs to a round that has ended, as does a list that it has filled.

    Nothing changes where the trace is in that round, or in one of another loop.
    """
    w = world()
    depth = len(w.open)
    if w.events is None or len(now) <= depth or list(now[:depth]) != w.open:
        yield
        return
    at = 1 + max(k for k, e in enumerate(w.events) if _is_in(e, now))
    while isinstance(mark := w.events[at], Mark) and mark.letter != f"t{len(now) - 1}":
        at += 1
    after, w.events = w.events[at:], w.events[:at]
    ended, w.open = w.open, list(now)
    lengths = {f"t{k}": now[k][1] for k in range(depth, len(now))}
    w.lengths.update(lengths)
    try:
        yield
    finally:
        w.events += after
        w.open = ended
        for letter in lengths:
            del w.lengths[letter]


def _is_in(event: Any, now: tuple[tuple[int, int], ...]) -> bool:
    return isinstance(event, Node) and event.rounds[: len(now)] == now


class Iterable:
    """A thing that a loop goes over: how many rounds, and the element at a counter.

    line: the first number and the step of one that goes over numbers, as a range does.
    """

    def __init__(
        self,
        count: Size | int,
        element: Callable[[Size], Any],
        line: tuple[Size, Size] | None = None,
    ) -> None:
        self.count, self.element, self.line = Size.of(count), element, line

    def __iter__(self) -> Iterator[Any]:
        return entered(self.count, self.element, sys._getframe(1))

    def __len__(self) -> int:
        return fixed(self.count)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return list(self)[i]
        place = Size.of(i.size if hasattr(i, "size") else int(i))
        return self.element(place if world().length(place) >= 0 else self.count + place)

    def __contains__(self, x: Any) -> bool:
        return any(x == y for y in self)


class Pile(list[Any]):
    """A list of what a loop has made, with its array: a list of such is the array of a nest."""

    def __init__(self, items: list[Any], array: Any) -> None:
        super().__init__(items)
        self._array, self._made = array, list(items)

    @property
    def array(self) -> Any:
        """The array, None where the list has been changed since."""
        same = len(self) == len(self._made)
        same = same and all(a is b for a, b in zip(self, self._made, strict=True))
        return self._array if same else None


def entered(count: Size, element: Callable[[Size], Any], frame: Any) -> Iterator[Any]:
    """Marked rounds for a `for` in a frame; for unpacking and C functions all elements at once."""
    if opname[frame.f_code.co_code[frame.f_lasti]] in ("GET_ITER", "GET_YIELD_FROM_ITER"):
        return rounds(count, element)
    return iter([element(Size.of(i)) for i in range(fixed(count))])


def is_few(number: int, total: int) -> bool:
    """Return whether rounds are so few that they are as many whatever the count of all is."""
    return number <= total - number


def runs(nodes: list[Node]) -> list[tuple[int, int, Size | None]]:
    """Stretches of nodes that successive rounds of one loop made, in order or in reverse.

    Each is its start, its end and its length in letters; a node that is in none is a stretch of
    its own, of length None.
    """
    found: list[tuple[int, int, Size | None]] = []
    start = 0
    while start < len(nodes):
        end, loop = start + 1, None
        if end < len(nodes) and (loop := _loop(nodes[start], nodes[end])) is not None:
            depth, step = loop
            while end < len(nodes) and _loop(nodes[end - 1], nodes[end]) == (depth, step):
                end += 1
        length: Size | None = None
        if loop is not None:
            count, total = world().counts[nodes[start].rounds[loop[0]][0]]
            if is_few(end - start, total):
                found += [(k, k + 1, None) for k in range(start, end - 1)]
                start = end - 1
            else:
                length = count - (total - (end - start))
        found.append((start, end, length))
        start = end
    return found


def _loop(a: Node, b: Node) -> tuple[int, int] | None:
    """The depth of a finished loop whose successive rounds made two nodes, and their order."""
    depth = next(
        (d for d, (p, q) in enumerate(zip(a.rounds, b.rounds, strict=False)) if p != q),
        -1,
    )
    if depth < 0 or a.rounds[depth][0] != b.rounds[depth][0]:
        return None
    number, step = a.rounds[depth][0], b.rounds[depth][1] - a.rounds[depth][1]
    if abs(step) != 1 or any(number == n for n, _ in world().open):
        return None
    return depth, step
