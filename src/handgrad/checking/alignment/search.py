"""The search: changes in the order of their size, until one puts right what is wrong.

Of equivalent changes the smallest edit of the source is told; of those, the one that makes a value
that is right of one that is not. Several faults are put right one after another.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.generators import changes
from handgrad.checking.alignment.pieces import Piece, observed, pieces
from handgrad.checking.alignment.pool import Pool, derived
from handgrad.checking.alignment.size import size_of, whole_value
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.alignment.written import Written, written
from handgrad.checking.hypotheses import Draw
from handgrad.checking.trial import TrialRun, backward
from handgrad.checking.trial import forward as run_forward
from handgrad.forward_backward import ForwardBackward

#: Seconds of processor time that the search may take, on the usual inputs and on others.
BUDGET: Final = {"usual": 5.0}
_ELSEWHERE: Final = 2.0
#: First changes of two that are tried.
_FIRST: Final = 6


@dataclass(eq=False)
class Hit:
    """A change that puts gradients right, with the edit of the source that it is.

    size: words that change. doubt: 0 where it makes a right value of one that is not.
    """

    change: Change
    piece: Piece
    covers: tuple[str, ...]
    written: Written | None
    size: float
    doubt: float

    @property
    def rank(self) -> tuple[float, float, float]:
        return -len(self.covers), self.size, self.doubt


class Search:
    """The changes of one target's functions that put its gradients right."""

    def __init__(
        self,
        functions: ForwardBackward,
        draws: Sequence[Draw],
        runs: Sequence[TrialRun],
        wrong: Sequence[str],
        rng: np.random.Generator,
        situation: str,
    ) -> None:
        self.end = time.process_time() + BUDGET.get(situation, _ELSEWHERE)
        self.functions, self.runs = functions, runs
        self.wrong = tuple(wrong)
        self.trials = Trials(functions, draws, runs, wrong, rng)

    def late(self) -> bool:
        return time.process_time() > self.end

    @cached_property
    def pieces(self) -> list[Piece]:
        """The user's functions that run in a pass."""
        done = self.runs[0]
        (_, cache), before = observed(lambda: run_forward(self.functions, done.arrays))
        _, after = observed(lambda: backward(self.functions, done.dy, cache))
        return pieces(before, after)

    @cached_property
    def pool(self) -> Pool:
        """What is right, by the derivation."""
        return derived(self.functions, self.runs[0])

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
        if rest and not self.late():
            told += self._two(tuple(name for name in self.wrong if name in rest))
        return told

    def hits(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The changes that put some of these gradients right and spoil none, best first."""
        found: list[Hit] = []
        for inserted, forward in ((False, False), (True, False), (False, True)):
            for size, change, piece in self._by_size(inserted=inserted, forward=forward):
                if self.late():
                    break
                whole = [hit.size for hit in found if len(hit.covers) == len(wrong)]
                if whole and size > min(whole):
                    break
                covers = self.trials.covered(change, piece, wrong)
                if covers:
                    doubt = self._doubt(change)
                    found.append(Hit(change, piece, covers, written(change, piece), size, doubt))
        return sorted(found, key=lambda hit: hit.rank)

    def _by_size(self, *, inserted: bool, forward: bool) -> list[tuple[float, Change, Piece]]:
        every = [
            (size_of(change), change, piece)
            for piece in self.pieces
            if piece.in_forward == forward
            for change in changes(piece, inserted=inserted)
        ]
        return sorted(every, key=lambda each: each[0])

    def _doubt(self, change: Change) -> float:
        """How little the values at the line say for a change: is what it makes a right value?"""
        before = whole_value(change)
        with change.made():
            after = whole_value(change)
        if before is None or after is None:
            return 1.0
        return float(self.pool.has(before)) + float(not self.pool.has(after))

    def _two(self, wrong: tuple[str, ...]) -> list[list[Hit]]:
        """Two changes that put gradients right together and neither alone.

        The first makes a right value of one that is not, whatever comes of it later.
        """
        for first, piece in self._local():
            if self.late():
                break
            with first.made():
                try:
                    code = piece.compiled()
                except ValueError:
                    continue
                with piece.in_force(code):
                    second = [hit for hit in self.hits(wrong) if len(hit.covers) == len(wrong)]
                if second:
                    same = [hit for hit in second if hit.rank == second[0].rank]
            if second:
                own = written(first, piece)
                return [[Hit(first, piece, wrong, own, size_of(first), 0.0)], same]
        return []

    def _local(self) -> list[tuple[Change, Piece]]:
        found: list[tuple[Change, Piece]] = []
        lines: set[int] = set()
        for inserted in (False, True):
            for _, change, piece in self._by_size(inserted=inserted, forward=False):
                if self.late() or len(found) >= _FIRST:
                    return found
                if change.line not in lines and self._doubt(change) == 0.0:
                    lines.add(change.line)
                    found.append((change, piece))
        return found
