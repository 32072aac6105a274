"""Rounds of a loop that compute alike: the first is written out, and what changes after it.

Such are the blocks of a long model and the steps of a decoder. A part of a loop has a number with
that of the round in it: 1.5.2.7 is part 7 in round 2 of the loop that is part 5 of node 1.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Script,
    Sign,
    Symbol,
    row,
)
from handgrad.equations.equations import DerivedEquation
from handgrad.equations.models.steps import OpCall
from handgrad.program import Node, Round

#: The most symbols that may stand for others from the first round to the second.
_MOST_OTHERS = 6


@dataclass(frozen=True)
class Repeated:
    """Rounds, counted from 1, that do what the round before them does.

    `changes` lead from the text of each round to that of the next: numbers, names of layers, and
    symbols.
    """

    first: int
    last: int
    changes: tuple[tuple[Formula | str, Formula | str], ...]


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

    def block(self, place: tuple[int, int] | None) -> tuple[str, int] | None:
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


def folded(parts: Iterable[OpCall]) -> list[OpCall | Repeated]:
    """The parts, of alike rounds the first alone."""
    found: list[OpCall | Repeated] = []
    for loop, group in groupby(parts, key=lambda each: each.block and each.block[0]):
        here = list(group)
        if loop is None:
            found += here
            continue
        rounds = [
            list(each) for _, each in groupby(here, key=lambda each: each.block and each.block[1])
        ]
        found += _folded(rounds)
    return found


def _folded(rounds: list[list[OpCall]]) -> Iterator[OpCall | Repeated]:
    """A round that only moves on goes with those before it that do so in the same way."""
    yield from rounds[0]
    moves: dict[str, int] | None = None
    repeated: Repeated | None = None
    for number, (one, other) in enumerate(pairwise(rounds), start=2):
        step = _Step.between(one, other)
        if step is not None and repeated is not None and not step.others and step.moves == moves:
            repeated = replace(repeated, last=number)
            continue
        if repeated is not None:
            yield repeated
        repeated, moves = None, None
        if step is None or len(step.others) > _MOST_OTHERS:
            yield from other
        else:
            repeated, moves = Repeated(number, number, tuple(step.changes())), step.moves
    if repeated is not None:
        yield repeated


def _without_last(symbol: Formula) -> Formula:
    """A symbol without its last index."""
    match symbol:
        case Script(base, FormulaRow((*before, Sign(","), _)), sup):
            return Script(base, row(*before), sup)
    return symbol


@dataclass
class _Step:
    """From one round to the next: which way the numbers of rounds go, and what else changes."""

    #: 1 or −1 by what stands before the number of the round: {"1.5": 1}.
    moves: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    #: Elements of arrays, such as x_[0] and x_[1].
    elements: dict[Formula, Formula] = field(default_factory=dict)
    others: dict[Formula, Formula] = field(default_factory=dict)
    #: Numbers that are the same in both rounds, and symbols that are, or that only move on.
    kept: set[str] = field(default_factory=set)
    plain: set[Formula] = field(default_factory=set)

    @classmethod
    def between(cls, one: list[OpCall], other: list[OpCall]) -> _Step | None:
        """None where the rounds are not alike."""
        found = cls()
        if len(one) != len(other) or not all(map(found._alike_parts, one, other)):
            return None
        fixed = any(number.startswith(f"{loop}.") for number in found.kept for loop in found.moves)
        return None if fixed or found.plain & found.others.keys() else found

    def changes(self) -> Iterator[tuple[Formula | str, Formula | str]]:
        yield from self.paths.items()
        for number in self.numbers.items():
            yield Number(number[0]), Number(number[1])
        yield from self.elements.items()
        for before, after in self.others.items():
            whole = _without_last(before)
            if whole == before or self.others.get(whole) != _without_last(after):
                yield before, after

    def _alike_parts(self, one: OpCall, other: OpCall) -> bool:
        first, second = re.sub(r"\d+", "0", one.path), re.sub(r"\d+", "0", other.path)
        if one.name != other.name or first != second:
            return False
        if one.path != other.path:
            self._path(one.path, other.path)
        settings = [each.value for each in one.settings] == [each.value for each in other.settings]
        return settings and self._alike(one.equations, other.equations)

    def _path(self, one: str, other: str) -> None:
        """What differs, up to its end: encoder.0 and encoder.1."""
        parts = one.split("."), other.split(".")
        end = max(i for i, pair in enumerate(zip(*parts, strict=True)) if pair[0] != pair[1]) + 1
        self.paths[".".join(parts[0][:end])] = ".".join(parts[1][:end])

    def _alike(self, one: Any, other: Any) -> bool:
        if isinstance(one, DerivedEquation) and isinstance(other, DerivedEquation):
            sides = [(each.left, each.right, each.shape, each.loop) for each in (one, other)]
            return one.updates == other.updates and self._alike(*sides)
        if isinstance(one, tuple) and isinstance(other, tuple):
            return len(one) == len(other) and all(map(self._alike, one, other))
        if isinstance(one, Number) and isinstance(other, Number):
            return self._alike_numbers(one.digits, other.digits)
        if type(one) is not type(other):
            return self._other(one, other)
        if not is_dataclass(one):
            return bool(one == other)
        if isinstance(one, Script) and self._element(one, other):
            return True
        before = copy.copy(self)
        self.moves, self.numbers = dict(self.moves), dict(self.numbers)
        self.elements, self.others = dict(self.elements), dict(self.others)
        pairs = ((getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
        if all(self._alike(*pair) for pair in pairs):
            if isinstance(one, Script | Symbol | Fraction):
                self.plain.add(one)
            return True
        self.moves, self.numbers = before.moves, before.numbers
        self.elements, self.others = before.elements, before.others
        return self._other(one, other)

    def _alike_numbers(self, one: str, other: str) -> bool:
        if one == other:
            self.kept.add(one)
            return True
        parts = one.split("."), other.split(".")
        different = [i for i, pair in enumerate(zip(*parts, strict=False)) if pair[0] != pair[1]]
        if len(parts[0]) != len(parts[1]) or len(parts[0]) < 4 or len(different) != 1:
            return False
        (at,) = different
        loop = ".".join(parts[0][:at])
        move = int(parts[1][at]) - int(parts[0][at])
        self.numbers[".".join(parts[0][: at + 1])] = ".".join(parts[1][: at + 1])
        return abs(move) == 1 and self.moves.setdefault(loop, move) == move

    def _element(self, one: Script, other: Script) -> bool:
        """True for an element of the same array, and the one beside it."""
        if one == other or one.base != other.base or one.sup != other.sup:
            return False
        if not isinstance(one.sub, Fenced) or not isinstance(other.sub, Fenced):
            return False
        numbers = [re.findall(r"Number\(digits='(\d+)'\)", repr(each)) for each in (one, other)]
        apart = {abs(int(b) - int(a)) for a, b in zip(*numbers, strict=False) if a != b}
        if len(numbers[0]) != len(numbers[1]) or apart != {1}:
            return False
        return self.elements.setdefault(one, other) == other

    def _other(self, one: Any, other: Any) -> bool:
        """True for symbols, of which one always stands for the other."""
        symbols = Script | Symbol | Fraction
        if not isinstance(one, symbols) or not isinstance(other, symbols):
            return False
        return self.others.setdefault(one, other) == other
