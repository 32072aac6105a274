"""The search: changes in the order of their size, until one puts right what is wrong.

Of equivalent changes the smallest edit of the source is told. Several faults are put right one
after another.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np

from handgrad.checking.alignment.borrowing import Borrowed
from handgrad.checking.alignment.changes import Change, probed
from handgrad.checking.alignment.generators import changes
from handgrad.checking.alignment.pieces import CodePiece, observed, pieces
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.alignment.written import WrittenDiff, written
from handgrad.checking.attempts import attempt
from handgrad.checking.hypotheses import Draw
from handgrad.checking.trial import TrialRun, backward
from handgrad.checking.trial import forward as run_forward
from handgrad.forward_backward import ForwardBackward

#: A change with its size and the function that it is made in.
Sized = tuple[float, Change, CodePiece]
#: Changes of so many words more are told as rivals of the smallest.
NEAR: Final = 2.0
#: Seconds after which the time is asked for again.
_SELDOM: Final = 0.05


@dataclass(eq=False)
class Hit:
    """A change that puts gradients right, with the edit of the source that it is.

    size: words that change.
    """

    change: Change
    piece: CodePiece
    covers: tuple[str, ...]
    written: WrittenDiff | None
    size: float

    @property
    def rank(self) -> tuple[float, float]:
        return -len(self.covers), self.size


class SourceSearch:
    """The changes of one target's functions that put its gradients right."""

    def __init__(
        self,
        functions: ForwardBackward,
        draws: Sequence[Draw],
        runs: Sequence[TrialRun],
        wrong: Sequence[str],
        rng: np.random.Generator,
        seconds: float,
    ) -> None:
        self.end = time.process_time() + seconds
        self._asked, self._late = time.perf_counter(), False
        self.functions, self.runs = functions, runs
        self.wrong = tuple(wrong)
        self.trials = Trials(functions, draws, runs, wrong, rng)

    def late(self) -> bool:
        """Return whether the processor time is over; it is asked for now and then, being slow."""
        now = time.perf_counter()
        if now > self._asked + _SELDOM:
            self._asked, self._late = now, time.process_time() > self.end
        return self._late

    @cached_property
    def pieces(self) -> list[CodePiece]:
        """The user's functions that run in a pass; none where it leaves arrays and Python."""
        done = self.runs[0]
        with self.trials.kept.put_back():
            before = observed(lambda: run_forward(self.functions, done.arrays))
            _, cache = before.result
            dy = copy.deepcopy(done.dy)
            after = observed(lambda: backward(self.functions, dy, cache))
        if before.leads_out or after.leads_out:
            return []
        return pieces(before.calls, after.calls)

    @cached_property
    def borrowed(self) -> Borrowed:
        return Borrowed(self.pieces)

    def faults(self) -> list[list[Hit]]:
        """For each fault the changes that put it right, all equivalent, best first."""
        found = self.hits(self.wrong)
        told: list[list[Hit]] = []
        rest = set(self.wrong)
        while found:
            same = [hit for hit in found if set(hit.covers) == set(found[0].covers)]
            told.append(same)
            rest -= set(same[0].covers)
            found = [hit for hit in found if set(hit.covers) <= rest]
        return told

    def hits(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The changes that put some of these gradients right and spoil none, best first."""
        found: list[Hit] = []
        for listed in self._in_order(wrong):
            for size, change, piece in listed:
                whole = [hit.size for hit in found if len(hit.covers) == len(wrong)]
                if self.late() or (whole and size > min(whole) + NEAR):
                    break
                hit = attempt(partial(self._hit, size, change, piece, wrong), None)
                if hit is not None:
                    found.append(hit)
        return sorted(found, key=lambda hit: hit.rank)

    def _in_order(self, wrong: tuple[str, ...]) -> Iterator[list[Sized]]:
        """Changes of backward at places that reach wrong gradients alone, elsewhere, of forward."""
        alone: list[Sized] = []
        rest: list[Sized] = []
        reached: dict[tuple[int, str, int | None], bool] = {}
        for each in self._by_size(forward=False):
            _, change, piece = each
            key = (id(change.place.parent), change.place.field, change.place.index)
            if key not in reached:
                reached[key] = self.late() or self._reaches_alone(change, piece, wrong)
            (alone if reached[key] else rest).append(each)
        yield alone
        yield rest
        yield self._by_size(forward=True)

    def _reaches_alone(self, change: Change, piece: CodePiece, wrong: tuple[str, ...]) -> bool:
        """Return whether other values at a place would make none of the right gradients wrong.

        True where that is not known.
        """
        place = change.place
        probe = probed(place)
        if probe is None:
            return True
        other = replace(change, new=probe, others=())
        moved = self.trials.moved_by(other, piece)
        return moved is None or (bool(moved & {*wrong}) and moved <= {*wrong})

    def _hit(
        self, size: float, change: Change, piece: CodePiece, wrong: tuple[str, ...]
    ) -> Hit | None:
        covers = self.trials.covered(change, piece, wrong)
        if not covers:
            return None
        return Hit(change, piece, covers, written(change, piece), size)

    def _by_size(self, *, forward: bool) -> list[Sized]:
        known: dict[ast.AST, list[str]] = {}
        every = [
            (size_of(change, known), change, piece)
            for piece in self.pieces
            if piece.in_forward == forward
            for inserted in (False, True)
            for change in changes(piece, self.borrowed, inserted=inserted)
        ]
        return sorted(every, key=lambda each: each[0])
