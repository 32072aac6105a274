"""Lines of a backward of which another value, one of the derivation's, puts gradients right.

A line's value is exchanged for each of its size that the derived backward has, and the backward is
run on. Where that puts gradients right on every draw, it is known which value the line should have
had, and its expression is searched for the least change that gives it. Where none does, the
derivation says what the wrong value is of it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from handgrad.checking.affixes import plain, without_affix
from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.lines import LineValues
from handgrad.checking.alignment.paths import Words, same, words
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.pool import Right, SweptForward
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.slots import LineSlot, slots
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.tensors import as_tensors
from handgrad.checking.trial import backward
from handgrad.checking.trial import forward as run_forward
from handgrad.program.source import nested

#: Values of the derivation that are tried in the place of one.
_MOST: Final = 40
#: The name by which a changed function finds them.
_NAME: Final = "_right_values"


@dataclass(frozen=True, eq=False)
class Intervention:
    """A line's values exchanged for right ones, with the gradients that this puts right.

    rights: one for each round.
    """

    slot: LineSlot
    rights: tuple[Right, ...]
    change: Change
    covers: tuple[str, ...] = ()

    @property
    def right(self) -> Right:
        """That of the last round."""
        return self.rights[-1]


@dataclass(frozen=True, eq=False)
class Departed:
    """A slot on each draw, with the right value of the first and its position."""

    slots: list[LineSlot]
    right: Right
    value: np.ndarray


class _Drawn:
    """Values of the derivation in a changed function: `_right_values[number]`, of the draw run."""

    def __init__(self, trials: Trials, derivations: Sequence[SweptForward]) -> None:
        self.trials, self.derivations = trials, derivations
        self.wanted: list[tuple[tuple[Right, ...], LineSlot]] = []
        self._rounds: dict[int, tuple[int, int]] = {}

    def __getitem__(self, number: int) -> Any:
        rights, slot = self.wanted[number]
        run, done = self._rounds.get(number, (0, 0))
        done = done if run == self.trials.number else 0
        self._rounds[number] = self.trials.number, done + 1
        derived = self.derivations[self.trials.draw]
        right = derived.rights[rights[done % len(rights)].number]
        value = laid_out(derived.value(right), slot.value.shape)
        return as_tensors(value) if slot.of_tensors else value


def laid_out(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A copy of a value in another shape, transposed where that makes it fit."""
    array = np.array(value, dtype=np.float64)
    return array.T if array.shape != shape == array.T.shape else array.reshape(shape)


class Interventions:
    """Those of one target. derivations: on the two draws, and at other inputs where there are."""

    def __init__(
        self, pieces: Sequence[CodePiece], trials: Trials, derivations: Sequence[SweptForward]
    ) -> None:
        self.pieces = [piece for piece in pieces if not piece.in_forward]
        self.trials, self.derivations = trials, derivations
        self._drawn = _Drawn(trials, derivations)

    @contextmanager
    def possible(self) -> Iterator[None]:
        """A block in which the user's functions find the values of the derivation."""
        scopes = [each.__globals__ for piece in self.pieces for each in piece.functions]
        for scope in scopes:
            scope[_NAME] = self._drawn
        try:
            yield
        finally:
            for scope in scopes:
                scope.pop(_NAME, None)

    def slots(self) -> list[LineSlot]:
        """The slots of the functions as they are now in force, in the order in which they run."""
        lines = self._lines(0)
        order = {each: i for i, each in enumerate(lines.values)}
        found = [slot for piece in self.pieces for slot in slots(piece, lines)]
        return sorted(found, key=lambda slot: order[slot.statement])

    def _lines(self, draw: int) -> LineValues:
        lines = LineValues(self.pieces)
        codes = {
            now: own
            for piece in self.pieces
            for now in nested(piece.functions[0].__code__)
            for own in nested(piece.code)
            if (now.co_qualname, now.co_firstlineno) == (own.co_qualname, own.co_firstlineno)
        }
        functions, done = self.trials.functions, self.trials.runs[draw]

        def run() -> None:
            _, cache = run_forward(functions, done.arrays)
            backward(functions, copy.deepcopy(done.dy), cache)

        with self.trials.quietly(draw):
            lines.watched(run, codes)
        return lines

    def under(self, each: Intervention) -> Departed | None:
        """A slot in the round in which its expression departs most, where no other round does."""
        with each.change.made():
            code = each.slot.piece.compiled()
        found: list[LineSlot] = []
        number = 0
        for draw in range(len(self.trials.runs)):
            with each.slot.piece.in_force(code):
                rounds = self._lines(draw).names.get(each.slot.statement, [])
            made = [self._with(each.slot, names) for names in rounds]
            if draw == 0 and len(made) == len(each.rights):
                apart = [_apart(a, self.value(each, i)) for i, a in enumerate(made)]
                number = int(np.argmax(apart))
            if number < len(made) and (slot := made[number]) is not None:
                found.append(slot)
        if not found and len(each.slot.values) == 1:
            found = [each.slot]  # a call that is not run on its own
        return Departed(found, each.rights[number], self.value(each, number)) if found else None

    def _with(self, slot: LineSlot, names: dict[str, Any]) -> LineSlot | None:
        scope = CallScope(slot.scope.function, replace(slot.scope.call, names=names))
        value = scope.array(slot.place.get())
        return None if value is None else replace(slot, scope=scope, values=[value])

    def of(self, slot: LineSlot, wrong: tuple[str, ...]) -> Iterator[Intervention]:
        """Those at one slot that put some of these gradients right, and spoil none."""
        reached = self._reached(slot).intersection(wrong)
        for rights in self._rights(slot) if reached else ():
            if self.trials.work.over():
                return
            change = self._exchanged(slot, rights)
            covers = self.trials.covered(change, slot.piece, wrong)
            if covers:
                yield Intervention(slot, rights, change, covers)
            if reached <= {*covers}:
                return

    def _reached(self, slot: LineSlot) -> set[str]:
        """The gradients that other values at a slot make others."""
        scaled = ast.BinOp(slot.place.get(), ast.Mult(), ast.Constant(1.37))
        change = Change(slot.place, scaled, "", "", "", slot.statement)
        return self.trials.moved_by(change, slot.piece) or set()

    def _rights(self, slot: LineSlot) -> list[tuple[Right, ...]]:
        """Values of the derivation of a slot's size, gradients first, each once.

        Of those that are equal it is that with a name, or the last, from which more comes back.
        """
        derived = self.derivations[0]
        every: list[tuple[Right, ...]] = [(each,) for each in derived.rights]
        if len(slot.values) > 1:
            rounds = derived.over_rounds(len(slot.values))
            every = [*rounds, *(each[::-1] for each in rounds)]
        found: dict[bytes, tuple[Right, ...]] = {}
        for rights in sorted(every, key=_rank):
            values = [derived.value(each) for each in rights]
            if any(np.size(each) != slot.value.size for each in values):
                continue
            if rights[0].node.kind == "f" and not all(map(same, slot.values, values)):
                whole = np.array([np.ravel(each) for each in values], dtype=np.float64)
                found.setdefault(whole.tobytes(), rights)
        return list(found.values())[:_MOST]

    def _exchanged(self, slot: LineSlot, rights: tuple[Right, ...]) -> Change:
        self._drawn.wanted.append((rights, slot))
        number = ast.Constant(len(self._drawn.wanted) - 1)
        new = ast.Subscript(ast.Name(_NAME, ast.Load()), number, ast.Load())
        return Change(slot.place, new, "", "", "", slot.statement)

    def named(self, slot: LineSlot) -> Iterator[Intervention]:
        """The gradient of what a slot's variable is called after, where it is another.

        Names lie, so that a value that is computed and is a right one is left as it is.
        """
        derived = self.derivations[0]
        is_renamed = isinstance(slot.place.get(), ast.Name)
        if len(slot.values) > 1:
            return
        if not is_renamed and derived.pool.has(slot.value) is not False:
            return
        for right in reversed(derived.rights):
            value = derived.value(right)
            fits = self.is_named(slot, right) and np.size(value) == slot.value.size
            if fits and not same(slot.value, value):
                yield Intervention(slot, (right,), self._exchanged(slot, (right,)))

    def is_named(self, slot: LineSlot, right: Right) -> bool:
        """Return whether a slot's variable is called after what this is the gradient of."""
        name = slot.name.rpartition(".")[2]
        wanted = {plain(each) for each in without_affix(name)}
        return right.is_gradient and plain(right.node.name) in wanted

    def value(self, intervention: Intervention, number: int) -> np.ndarray:
        """The right value of one round on the first draw, in the shape of the slot's."""
        own = self.derivations[0].value(intervention.rights[number])
        return laid_out(own, intervention.slot.value.shape)

    def holds(self, change: Change, intervention: Intervention) -> bool:
        """Return whether a change does all that an intervention does."""
        covers = intervention.covers
        return not covers or set(self.trials.covered(change, intervention.slot.piece, covers)) == {
            *covers
        }

    def told(self, departed: Departed) -> Words | None:
        """The words for the wrong value, by what it is of the derivation."""
        values = [slot.value for slot in departed.slots]
        return words(self.derivations[: len(values)], departed.right, values)


def _apart(slot: LineSlot | None, right: np.ndarray) -> float:
    if slot is None or slot.value.shape != right.shape:
        return -1.0
    return float(np.max(np.abs(slot.value - right)))


def _rank(rights: tuple[Right, ...]) -> tuple[bool, bool, int]:
    last = rights[-1]
    return not last.is_gradient, not last.node.name, -last.number
