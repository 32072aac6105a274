"""The search: changes in the order of their size, until one puts right what is wrong.

Of equivalent changes the smallest edit of the source is told. Several faults are put right one
after another.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product, takewhile
from typing import Final

import numpy as np

from handgrad.checking.alignment.borrowing import Borrowed
from handgrad.checking.alignment.budget import Deadline
from handgrad.checking.alignment.changes import Change, Place, probed
from handgrad.checking.alignment.generators import changes
from handgrad.checking.alignment.pieces import Call, CodePiece, observed, pieces
from handgrad.checking.alignment.pool import right_values
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.standing import Standing
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
#: The words that a change counts more at a line that makes right values already, and less where it
#: makes them.
_RIGHT: Final = 3.0
_SETTLED: Final = 1.5


@dataclass(eq=False)
class Hit:
    """A change that puts gradients right, with the edit of the source that it is.

    words: those that change. size: the same, less where the line's values become right ones, which
    they were not, and more where they were right before.
    """

    change: Change
    piece: CodePiece
    covers: tuple[str, ...]
    written: WrittenDiff | None
    words: float
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
        self.late = Deadline(time.process_time() + seconds).over
        self.functions, self.runs = functions, runs
        self.wrong = tuple(wrong)
        self._entry: Call | None = None
        self.trials = Trials(functions, draws, runs, wrong, rng)

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
        self._entry = next(iter(before.calls.values()), None)
        return pieces(before.calls, after.calls)

    @cached_property
    def standing(self) -> Standing | None:
        """The lines of backward by their values, None where the forward cannot be derived."""
        for piece in self.pieces:
            if self._entry is not None and piece.code is self._entry.code:
                dy, right = self.runs[0].dy, dict(self.trials.draws[0].right)
                if all(each.in_forward for each in self.pieces) and np.size(dy) == 1:
                    # Gradients made beside the loss know no dy: what comes back is times dy.
                    right = {name: each / float(dy) for name, each in right.items()}
                    dy = np.ones_like(dy)
                with self.trials.kept.put_back():
                    pool = right_values(piece.functions[0], self._entry.given, dy, right)
                return None if pool is None else Standing(pool, self.trials, self.pieces)
        return None

    @cached_property
    def borrowed(self) -> Borrowed:
        return Borrowed(self.pieces)

    def faults(self) -> list[list[Hit]]:
        """For each fault the changes that put it right, all equivalent, best first."""
        told: list[list[Hit]] = []
        rest = self.wrong
        with ExitStack() as made:
            while rest and not self.late() and (found := self.hits(rest)):
                while found:
                    same = [hit for hit in found if set(hit.covers) == set(found[0].covers)]
                    told.append(same)
                    rest = tuple(name for name in rest if name not in same[0].covers)
                    found = [hit for hit in found if set(hit.covers) <= set(rest)]
                    self._keep(same[0], made)
        return told

    def departing(self, name: str) -> ast.stmt | None:
        """The first line that this gradient, and none that is right, is made from by a value that
        the derived backward has not, out of values that it has; None where there is none.
        """
        if self.standing is None:
            return None
        unknown: set[str] = set()
        for statement, right in self.standing.of.items():
            if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Return):
                continue
            names = [each for each in ast.walk(statement) if isinstance(each, ast.Name)]
            made = {each.id for each in names if isinstance(each.ctx, ast.Store)}
            if right:
                unknown -= made
            elif unknown.isdisjoint({each.id for each in names} - made):
                unknown |= made
                if self._makes(statement, name):
                    return statement
            else:
                unknown |= made
        return None

    def _makes(self, statement: ast.Assign | ast.AugAssign | ast.Return, name: str) -> bool:
        place = Place(statement, "value")
        probe = None if isinstance(statement.value, ast.Tuple) else probed(place)
        if probe is None:
            return False
        change = Change(place, probe, "", "", "", statement)
        moved = [self.trials.moved_by(change, piece) for piece in self._around(statement)]
        return any(each and name in each and each <= {*self.wrong} for each in moved)

    def _around(self, statement: ast.stmt) -> list[CodePiece]:
        """The function that holds a statement."""
        holds = (any(n is statement for n in ast.walk(piece.tree)) for piece in self.pieces)
        return [piece for piece, own in zip(self.pieces, holds, strict=True) if own]

    def _keep(self, hit: Hit, made: ExitStack) -> None:
        """Leave a change in force, so that what is still wrong is looked for beside it."""
        made.enter_context(hit.change.made())
        made.enter_context(hit.piece.in_force(hit.piece.compiled()))
        self.trials.mended.update(hit.covers)

    def hits(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The changes that put some of these gradients right and spoil none, best first."""
        found: list[Hit] = []
        for listed in self._in_order(wrong):
            for size, change, piece in listed:
                whole = [hit.words for hit in found if len(hit.covers) == len(wrong)]
                if self.late() or (whole and size > min(whole) + NEAR):
                    break
                hit = attempt(partial(self._hit, size, change, piece, wrong), None)
                if hit is not None:
                    found.append(hit)
        return sorted(found, key=lambda hit: hit.rank)

    def _in_order(self, wrong: tuple[str, ...]) -> Iterator[list[Sized]]:
        """Changes of backward at places that reach wrong gradients alone, elsewhere, of forward.

        At places of backward that reach none of them no change puts one right.
        """
        yield sorted((each for piece in self.pieces for each in self._solved(piece)), key=_size)
        alone: list[Sized] = []
        rest: list[Sized] = []
        reached: dict[tuple[int, str, int | None], frozenset[str]] = {}
        for each in self._by_size(forward=False):
            _, change, piece = each
            key = (id(change.place.parent), change.place.field, change.place.index)
            if key not in reached:
                reached[key] = self._reached(change, piece, wrong)
            found = reached[key]
            if change.others or not found.isdisjoint(wrong):
                (alone if found and found <= {*wrong} else rest).append(each)
        yield alone
        yield rest
        yield self._by_size(forward=True)

    def _reached(self, change: Change, piece: CodePiece, wrong: tuple[str, ...]) -> frozenset[str]:
        """The gradients that other values at a place make others; `wrong` where it is unknown."""
        place = change.place
        probe = None if self.late() else probed(place)
        if probe is None:
            return frozenset(wrong)
        moved = self.trials.moved_by(replace(change, new=probe, others=()), piece)
        return frozenset(wrong if moved is None else moved)

    def _hit(
        self, size: float, change: Change, piece: CodePiece, wrong: tuple[str, ...]
    ) -> Hit | None:
        covers = self.trials.covered(change, piece, wrong)
        if not covers:
            return None
        weighed = size
        if self.standing is not None:
            weighed -= _SETTLED * self.standing.settles(change, piece)
        return Hit(change, piece, covers, written(change, piece), size, weighed)

    def _by_size(self, *, forward: bool) -> list[Sized]:
        own = [piece for piece in self.pieces if piece.in_forward == forward]
        every = takewhile(lambda _: not self.late(), self._sized(own))
        return sorted(every, key=_size)

    def _sized(self, own: list[CodePiece]) -> Iterator[Sized]:
        known: dict[ast.AST, list[str]] = {}
        for piece, inserted in product(own, (False, True)):
            for change in changes(piece, self.borrowed, inserted=inserted):
                yield size_of(change, known) + _RIGHT * self._is_right(change), change, piece

    def _solved(self, piece: CodePiece) -> Iterator[Sized]:
        standing = self.standing
        known: dict[ast.AST, list[str]] = {}
        for function, call in piece.regions if standing is not None else ():
            assert standing is not None
            for place, statement, variant in standing.solved(CallScope(function, call)):
                new, kind, part, phrase = variant
                said_so = phrase.replace("{}", part)
                change = Change(place, new, kind, part, said_so, statement)
                yield size_of(change, known), change, piece

    def _is_right(self, change: Change) -> bool:
        """Return whether the line of a change makes right values as it is."""
        return self.standing is not None and self.standing.of.get(change.statement) is True


def _size(each: Sized) -> float:
    return each[0]
