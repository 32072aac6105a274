"""Lines of a backward of which another value, one of the derivation's, puts gradients right.

A line's value is exchanged for each of its size that the derived backward has, and the backward is
run on. Where that puts gradients right on every draw, it is known which value the line should have
had, and its expression is searched for the least change that gives it. Where none does, the
derivation says what the wrong value is of it.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.changes import Change, probed
from handgrad.checking.alignment.lines import LineValues, is_copy
from handgrad.checking.alignment.paths import Words, same, words
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.pool import Right, SweptForward
from handgrad.checking.alignment.slots import LineSlot, slots
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.alignment.wording import said
from handgrad.checking.tensors import as_arrays, as_tensors

#: Values of the derivation that are tried in the place of one.
_MOST: Final = 160
#: The name by which a changed function finds them.
_NAME: Final = "_right_values"


@dataclass(frozen=True, eq=False)
class Intervention:
    """A line's values exchanged for right ones, with the gradients that this puts right.

    rights: one for each round. wrong: the gradients that are to be put right.
    """

    slot: LineSlot
    rights: tuple[Right, ...]
    change: Change
    wrong: tuple[str, ...] = ()
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
    """Values of the derivation in a changed function, of the draw run: `_right_values[number]`.

    Of a line that adds to a variable, or multiplies it, `_right_values[number, variable]`.
    """

    def __init__(self, trials: Trials, derivations: Sequence[SweptForward]) -> None:
        self.trials, self.derivations = trials, derivations
        self.wanted: list[tuple[tuple[Right, ...], LineSlot]] = []
        self._rounds: dict[int, tuple[int, int]] = {}

    def __getitem__(self, asked: int | tuple[int, Any]) -> Any:
        number, before = asked if isinstance(asked, tuple) else (asked, None)
        rights, slot = self.wanted[number]
        run, done = self._rounds.get(number, (0, 0))
        done = done if run == self.trials.number else 0
        self._rounds[number] = self.trials.number, done + 1
        derived = self.derivations[self.trials.draw]
        right = derived.rights[rights[done % len(rights)].number]
        value = wanted(slot, derived, right, as_arrays(before))
        return as_tensors(value) if slot.of_tensors else value


def wanted(slot: LineSlot, derived: SweptForward, right: Right, before: Any) -> np.ndarray:
    """The value of a slot with which its line gives a right one."""
    value, is_share = derived.value(right), right.use is not None
    if not slot.before:
        return laid_out(value, slot.value.shape)
    shape = slot.value.shape if is_share else np.shape(before)
    with np.errstate(all="ignore"):
        return slot.needed(laid_out(value, shape), before, is_share=is_share)


def laid_out(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A copy of a value in another shape, transposed where that makes it fit.

    One of another size stays as it is.
    """
    array = np.array(value, dtype=np.float64)
    if array.size != math.prod(shape):
        return array
    return array.T if array.shape != shape == array.T.shape else array.reshape(shape)


class Interventions:
    """Those of one target. derivations: on the two draws, and at other inputs where there are."""

    def __init__(
        self, pieces: Sequence[CodePiece], trials: Trials, derivations: Sequence[SweptForward]
    ) -> None:
        own = [piece for piece in pieces if not piece.in_forward]
        #: A function that makes gradients beside a loss is all of it.
        self.pieces = own or [*pieces]
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
        """The slots of the functions as they are now in force.

        Those of lines that make values which the derivation has not come first, in the order in
        which they first do; then the others, in the order in which they run.
        """
        lines = self.lines(0)
        self._rounds = lines.names
        departing: dict[ast.stmt, int] = {}
        for i, (statement, array) in enumerate(lines.made):
            if statement not in departing and self.derivations[0].pool.has(array) is False:
                departing[statement] = i
        found = [slot for piece in self.pieces for slot in slots(piece, lines)]
        for slot in found:
            if slot.statement not in departing and self.is_right(slot) is False:
                arrays = (i for i, (each, _) in enumerate(lines.made) if each is slot.statement)
                departing[slot.statement] = next(arrays, 0)
        order = {each: len(lines.made) + i for i, each in enumerate(lines.names)} | departing
        return sorted(found, key=lambda slot: order[slot.statement])

    def is_right(self, slot: LineSlot) -> bool | None:
        """Return whether a slot's value is a right one for its name; None where it is too plain."""
        return self.derivations[0].judged(slot.value, slot.called, is_copy=is_copy(slot.statement))

    def lines(self, draw: int) -> LineValues:
        """The values that each line makes in a pass of this draw, by the functions in force."""
        return self.trials.line_values(self.pieces, draw)

    def under(self, each: Intervention) -> Departed | None:
        """A slot in the round in which its expression departs most, where no other round does."""
        with each.change.made():
            code = each.slot.piece.compiled()
        found: list[LineSlot] = []
        number = 0
        for draw in range(len(self.trials.runs)):
            with each.slot.piece.in_force(code):
                lines = self.lines(draw)
            rounds = lines.names.get(each.slot.statement, [])
            results = lines.results.get(each.slot.statement, [])
            made = [each.slot.at(*begun) for begun in zip(rounds, results, strict=True)]
            if draw == 0 and len(made) == len(each.rights):
                apart = [
                    self._apart(own, right) for own, right in zip(made, each.rights, strict=True)
                ]
                for end, beside in ((0, 1), (-1, -2)) if len(apart) > 2 else ():
                    own = each.rights[end]
                    if own is each.rights[beside] or not own.made_by.rounds:  # any will do there
                        apart[end] = -1.0
                number = int(np.argmax(apart))
            if number < len(made) and (slot := made[number]) is not None:
                found.append(slot)
        if not found and len(each.slot.values) == 1:
            found = [each.slot]  # a call that is not run on its own
        right = each.rights[number]
        return Departed(found, right, self.value(found[0], right)) if found else None

    def of(self, slot: LineSlot, wrong: tuple[str, ...]) -> Iterator[Intervention]:
        """Those at one slot that put some of these gradients right, and spoil none."""
        reached = self._reached(slot).intersection(wrong)
        for rights in self._rights(slot) if reached else ():
            if self.trials.work.over():
                return
            change = self._exchanged(slot, rights)
            covers = self.trials.covered(change, slot.piece, wrong, derived=True)
            if covers:
                yield Intervention(slot, rights, change, wrong, covers)
            if reached <= {*covers}:
                return

    def _reached(self, slot: LineSlot) -> set[str]:
        """The gradients that other values at a slot make others."""
        other = probed(slot.place)
        if other is None:
            return set()
        change = Change(slot.place, other, "", "", "", slot.statement)
        return self.trials.moved_by(change, slot.piece) or set()

    def _rights(self, slot: LineSlot) -> list[tuple[Right, ...]]:
        """Values of the derivation of a slot's size, gradients first, each once.

        Of those that are equal it is that with a name, or the last, from which more comes back.
        """
        derived = self.derivations[0]
        every: list[tuple[Right, ...]] = [(each,) for each in derived.rights]
        if len(slot.values) > 1:
            rounds = derived.over_rounds(len(slot.values))
            # A line that is right when it is first called gets something wrong from another later.
            rounds += (
                each
                for each in derived.over_calls(len(slot.values))
                if not any(same(slot.values[0], derived.value(own)) for own in (each[0], each[-1]))
            )
            forward, backward = self._directions(slot)
            every = [*rounds] if forward else []
            every += [each[::-1] for each in rounds] if backward else []
        is_whole = len(slot.values) == 1 and not slot.before and not slot.is_stored
        other = {(each,) for each in self._of_other_sizes} if is_whole else set()
        found: dict[bytes, tuple[Right, ...]] = {}
        for rights in sorted(every, key=_rank):
            fits = all(self._fits(slot, each) for each in rights) or rights in other
            if rights[0].node.kind != "f" or not fits:
                continue
            if rights[0].is_local and not all(map(derived.is_local, rights)):
                continue
            unknown: list[Any] = [None] * len(slot.values)
            before = slot.before or unknown
            pairs = zip(rights, before, strict=False)
            values = [wanted(slot, derived, right, each) for right, each in pairs]
            if not all(map(same, slot.values, values)):
                whole = np.array([np.ravel(each) for each in values], dtype=np.float64)
                found.setdefault(whole.tobytes(), rights)
        return list(found.values())[:_MOST]

    @cached_property
    def _of_other_sizes(self) -> list[Right]:
        """The gradients, or derivatives, of inputs for which arrays of other sizes come back."""
        found, right = self.trials.runs[0].gradients, self.trials.draws[0].right
        known = [right[name] for name in right if np.size(found[name]) != np.size(right[name])]
        derived = self.derivations[0]
        inputs = {
            id(each)
            for each in derived.inputs
            if id(each) in derived.gradients
            if any(same(own, derived.gradients[id(each)].value) for own in known)
        }
        return [
            each
            for each in derived.rights
            if each.is_gradient and each.use is None and id(each.node) in inputs
        ]

    def _directions(self, slot: LineSlot) -> tuple[bool, bool]:
        """Return whether the rounds may go forward, and backward, as the function counts them."""
        rounds = self._rounds.get(slot.statement, [])
        counted = [
            np.diff([each[name] for each in rounds])
            for name, value in (rounds[0].items() if rounds else ())
            if type(value) is int and all(type(each.get(name)) is int for each in rounds)
        ]
        up = any((each > 0).all() for each in counted)
        down = any((each < 0).all() for each in counted)
        return up or not down, down or not up

    def _fits(self, slot: LineSlot, right: Right) -> bool:
        """Return whether a value may be what a slot should have, or what its line should leave."""
        size = np.size(self.derivations[0].value(right))
        if right.use is not None or not slot.before:
            return size == slot.value.size and (slot.is_sum or not slot.before)
        is_sum_of_rounds = slot.is_sum and len(slot.values) > 1
        return size == slot.before[-1].size == slot.value.size and not is_sum_of_rounds

    def _exchanged(self, slot: LineSlot, rights: tuple[Right, ...]) -> Change:
        self._drawn.wanted.append((rights, slot))
        asked: ast.expr = ast.Constant(len(self._drawn.wanted) - 1)
        if isinstance(slot.statement, ast.AugAssign):
            before = copy.deepcopy(slot.statement.target)
            before.ctx = ast.Load()
            asked = ast.Tuple([asked, before], ast.Load())
        new: ast.expr = ast.Subscript(ast.Name(_NAME, ast.Load()), asked, ast.Load())
        if any(isinstance(each, ast.Call) for each in ast.walk(slot.place.get())):
            # The call is made all the same, for a layer leaves its weights' gradients behind.
            both = ast.Tuple([slot.place.get(), new], ast.Load())
            new = ast.Subscript(both, ast.Constant(1), ast.Load())
        return Change(slot.place, new, "", "", "", slot.statement)

    def named(self, slot: LineSlot) -> Iterator[Intervention]:
        """The gradient of what a slot's variable is called after, where it is another.

        Names lie, so that a value that is computed and is a right one is left as it is, but for one
        that is a share of the gradient.
        """
        derived = self.derivations[0]
        if len(slot.values) > 1 or slot.before:
            return
        is_renamed = isinstance(slot.place.get(), ast.Name)
        is_open = is_renamed or derived.pool.has(slot.value) is False
        for right in derived.called(slot.called):
            value = derived.value(right)
            if np.size(value) != slot.value.size or same(slot.value, value):
                continue
            if is_open or any(same(slot.value, each) for _, each in derived.shares(right.node)):
                yield Intervention(slot, (right,), self._exchanged(slot, (right,)))

    def is_named(self, slot: LineSlot, right: Right) -> bool:
        """Return whether a slot's variable is called after what this is the gradient of."""
        return right in self.derivations[0].called(slot.called)

    def holds_its_name(self, slot: LineSlot) -> bool:
        """Return whether a slot's variable is called after what its value is the gradient of."""
        return self.derivations[0].is_called(slot.value, slot.called)

    def value(self, slot: LineSlot, right: Right) -> np.ndarray:
        """The value that a slot should have on the first draw."""
        return wanted(slot, self.derivations[0], right, slot.before[-1] if slot.before else None)

    def _apart(self, slot: LineSlot | None, right: Right) -> float:
        if slot is None or (value := self.value(slot, right)).shape != slot.value.shape:
            return -1.0
        return float(np.max(np.abs(slot.value - value)))

    def covers(
        self, change: Change, intervention: Intervention, *, sized: bool = True
    ) -> tuple[str, ...] | None:
        """The gradients that a change puts right: all of an intervention's, or more; else None.

        sized: at other numbers of rows too.
        """
        wrong, piece = intervention.wrong, intervention.slot.piece
        covers = self.trials.covered(change, piece, wrong, sized=sized) if wrong else ()
        return covers if {*covers} >= {*intervention.covers} else None

    def told(self, departed: Departed) -> Words | None:
        """The words for the wrong value, by what it is of the derivation."""
        is_share = departed.right.use is not None
        values = [slot.left(is_share=is_share) for slot in departed.slots]
        derived = self.derivations[: len(values)]
        if departed.right.is_local:
            pairs = zip(derived, values, strict=True)
            wholes = [each.whole(each.rights[departed.right.number], v) for each, v in pairs]
            return words(derived, wholes[0][0], [v for _, v in wholes], self.trials.work)
        return words(derived, departed.right, values, self.trials.work) or self._mistaken(
            departed, values
        )

    def _mistaken(self, departed: Departed, values: Sequence[np.ndarray]) -> Words | None:
        """The words for a variable of the user's with which a right value is computed wrongly."""
        first = departed.slots[0]
        for each, array in first.scope.atoms:
            if array.dtype.kind != "f" or not array.ndim:
                continue
            for i, operand in self.derivations[0].operands(departed.right, array.shape):
                made = (
                    derived.mistaken(
                        derived.rights[departed.right.number], i, slot.scope.array(each)
                    )
                    for derived, slot in zip(self.derivations, departed.slots, strict=False)
                )
                if all(map(same, values, made)):
                    part = f"{self.derivations[0].said(operand)} for {said(each)}"
                    return "stale variable", part, "another variable belongs there: {}"
        return None


def _rank(rights: tuple[Right, ...]) -> tuple[bool, bool, bool, int, int]:
    last = rights[-1]
    unnamed = sum(not each.node.name for each in rights)
    kind = (not last.is_gradient, last.is_local, last.use is not None)
    return *kind, unnamed, -last.number
