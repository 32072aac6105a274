"""Blocks that compute alike are written once, with a letter in the place of their number.

Such are the blocks of a transformer and the steps of a decoder. A part of a loop has a number with
that of the round in it: 1.5.2.7 is part 7 in round 2 of the loop that is part 5 of node 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from handgrad.documents.formulas.formula import Formula, FormulaRow, Number, Sign, row
from handgrad.equations.equations import DerivedEquation
from handgrad.equations.models.steps import Block, OpCall
from handgrad.program import Node, Round


@dataclass(frozen=True)
class Alike:
    """Blocks that do the same, by their numbers in order: their parts with the counter in the
    place of the number, or as they are where it is one block alone."""

    parts: tuple[OpCall, ...]
    counter: Formula
    numbers: tuple[int, ...]


#: The fewest rounds of a loop that has numbers for them.
_FEWEST = 3


class Numbers:
    """Numbers parts in their order, within a loop of alike rounds by the round.

    With `only` there is one part, which has the number of the whole.
    """

    def __init__(self, prefix: str, *, only: bool = False) -> None:
        self.only = only
        self.current = prefix if only else f"{prefix}.0"
        self._prefix = prefix
        self._count = 0
        self._inner = 0
        self._loops: dict[int, int] = {}
        self._round: tuple[int, int] | None = None

    def enter(self, place: tuple[int, int] | None) -> None:
        """Go on in a loop, given by its identity, and a round of it; or outside of loops."""
        if place is not None and place[0] not in self._loops:
            self._count += 1
            self._loops[place[0]] = self._count
        if place != self._round:
            self._inner = 0
        self._round = place

    def next(self) -> str:
        if self.only:
            return self.current
        if self._round is None:
            self._count += 1
            self.current = f"{self._prefix}.{self._count}"
        else:
            self._inner += 1
            loop, number = self._round
            self.current = f"{self._prefix}.{self._loops[loop]}.{number + 1}.{self._inner}"
        return self.current

    def loop(self, place: tuple[int, int] | None) -> tuple[str, int] | None:
        return None if place is None else (f"{self._prefix}.{self._loops[place[0]]}", place[1])


def repeated_rounds(nodes: Iterable[tuple[Node, Any]]) -> dict[Node, tuple[int, int]]:
    """The nodes in outermost loops whose rounds are alike, but for the first and last, with an
    identity of the loop and the number of the round.

    Each node comes with what it does; a loop is left when its rounds begin anew.
    """
    loops: list[dict[int, list[tuple[Node, Any]]]] = []
    before: Round | None = None
    for node, does in nodes:
        now = node.rounds[0] if node.rounds else None
        if now is not None:
            if before is None or now.loop != before.loop or now.number < before.number:
                loops.append({})
            loops[-1].setdefault(now.number, []).append((node, does))
        before = now
    found: dict[Node, tuple[int, int]] = {}
    for rounds in loops:
        shapes = [tuple(does for _, does in each) for each in rounds.values()]
        alike = max(map(shapes.count, shapes))
        if len(shapes) >= _FEWEST and alike >= max(2, len(shapes) - 2):
            for number, each in rounds.items():
                found |= {node: (id(rounds), number) for node, _ in each}
    return found


def folded(parts: Iterable[OpCall], *, once: bool = True) -> Iterator[OpCall | Alike]:
    """The parts, with those of alike blocks once, or every block by itself."""
    for stack, group in groupby(parts, key=lambda each: each.block and each.block.stack):
        here = list(group)
        if stack is None:
            yield from here
            continue
        rounds = [
            (block, tuple(each)) for block, each in groupby(here, key=lambda each: each.block)
        ]
        while rounds:
            alike = _alike_blocks(rounds if once else rounds[:1])
            yield alike
            rounds = rounds[len(alike.numbers) :]


def _alike_blocks(rounds: Sequence[tuple[Block | None, tuple[OpCall, ...]]]) -> Alike:
    """The first block with as many of those behind it as do the same."""
    block, first = rounds[0]
    assert block is not None
    whole: tuple[OpCall, ...] = first
    numbers = [block.number]
    for (before, one), (after, other) in pairwise(rounds):
        assert before is not None
        assert after is not None
        common = _Common(before.counter, before.number, after.number).of(one, other)
        if common is None or (len(numbers) > 1 and _said(common) != _said(whole)):
            break
        whole = common
        numbers.append(after.number)
    return Alike(whole, block.counter, tuple(numbers))


def _said(parts: Sequence[OpCall]) -> list[Any]:
    """The words of a page for parts, without their values."""
    return [
        (each.left, each.right, each.loop, each.shape) for part in parts for each in part.equations
    ]


def with_number(part: Any, counter: Formula, number: int) -> Any:
    """A formula with a number in the place of the counter and what is added to it."""
    match part:
        case FormulaRow((first, Sign("+" | "−") as sign, Number(digits))) if first == counter:
            return Number(str(number + (1 if sign.char == "+" else -1) * int(digits)))
    if part == counter:
        return Number(str(number))
    if isinstance(part, tuple):
        return tuple(with_number(each, counter, number) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    names = [each.name for each in fields(part)]
    return replace(
        part, **{name: with_number(getattr(part, name), counter, number) for name in names}
    )


class _UnlikeError(Exception):
    """Two blocks do not do the same."""


class _Common:
    """The common form of two blocks: numbers that go with that of the block are written by it."""

    def __init__(self, counter: Formula, first: int, second: int) -> None:
        self.counter, self.first, self.step = counter, first, second - first

    def of(self, one: Sequence[OpCall], other: Sequence[OpCall]) -> tuple[OpCall, ...] | None:
        try:
            return tuple(self._part(*pair) for pair in zip(one, other, strict=True))
        except (_UnlikeError, ValueError):
            return None

    def _part(self, one: OpCall, other: OpCall) -> OpCall:
        values = ([(each.symbol, each.value) for each in part.settings] for part in (one, other))
        paths = (re.sub(r"\d+", "0", part.path) for part in (one, other))
        if one.name != other.name or len(set(paths)) > 1:
            raise _UnlikeError
        settings = tuple(
            replace(before, symbol=self._formula(before.symbol, after.symbol))
            for before, after in zip(one.settings, other.settings, strict=True)
            if before.value == after.value
        )
        if len({len(each) for each in values}) > 1 or len(settings) < len(one.settings):
            raise _UnlikeError
        pairs = zip(one.equations, other.equations, strict=True)
        return replace(one, settings=settings, equations=tuple(self._equation(*e) for e in pairs))

    def _equation(self, one: DerivedEquation, other: DerivedEquation) -> DerivedEquation:
        if (one.shape, one.updates, one.name) != (other.shape, other.updates, other.name):
            raise _UnlikeError
        return replace(
            one,
            left=self._formula(one.left, other.left),
            right=self._formula(one.right, other.right),
            loop=self._formula(one.loop, other.loop),
            here=one.here and other.here and self._equation(one.here, other.here),
            step=self._formula(one.step, other.step),
            arrived=tuple(
                replace(before, symbol=self._formula(before.symbol, after.symbol))
                for before, after in zip(one.arrived, other.arrived, strict=True)
            ),
        )

    def _formula(self, one: Any, other: Any) -> Any:
        if one == other:
            return one
        if isinstance(one, Number) and isinstance(other, Number):
            return self._counted(one.digits, other.digits)
        if isinstance(one, tuple) and isinstance(other, tuple):
            return tuple(self._formula(*pair) for pair in zip(one, other, strict=True))
        if type(one) is not type(other) or not is_dataclass(one) or isinstance(one, type):
            raise _UnlikeError
        names = [each.name for each in fields(one)]
        return replace(
            one, **{name: self._formula(getattr(one, name), getattr(other, name)) for name in names}
        )

    def _counted(self, one: str, other: str) -> Formula:
        """A number that is by as much more in the second block as that of the block is."""
        if not (one.isdigit() and other.isdigit()) or int(other) - int(one) != self.step:
            raise _UnlikeError
        more = int(one) - self.first
        if not more:
            return self.counter
        return row(self.counter, Sign("+" if more > 0 else "−"), Number(str(abs(more))))
