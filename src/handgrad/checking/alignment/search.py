"""The search: changes in the order of their size, until one puts right what is wrong.

Of equivalent changes the smallest edit of the source is told. Several faults are put right one
after another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from typing import Final

import numpy as np

from handgrad.checking.alignment.borrowing import Borrowed
from handgrad.checking.alignment.changes import Change, Place, probed
from handgrad.checking.alignment.departures import Departures
from handgrad.checking.alignment.hits import Hit, Sized, adds_number
from handgrad.checking.alignment.interventions import Interventions
from handgrad.checking.alignment.linearity import not_linear
from handgrad.checking.alignment.listed import SizedChanges
from handgrad.checking.alignment.memory import bounded_memory
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.raised import raising_line, with_makers
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.standing import Standing
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.alignment.unused import idle, unfilled, unused
from handgrad.checking.alignment.variants import values_in
from handgrad.checking.alignment.watched import WatchedTarget
from handgrad.checking.alignment.words import SourceWords
from handgrad.checking.alignment.written import written
from handgrad.checking.attempts import attempt
from handgrad.checking.hypotheses import Draw
from handgrad.checking.trial import TrialFault, TrialRun
from handgrad.checking.work import Work

#: Changes of so many words more are told as rivals of the smallest.
NEAR: Final = 2.0
#: Words of a change of some of the wrong gradients that comes after those of all.
_LONG: Final = 4.5
#: Kinds of changes by which all that comes after is multiplied by a number.
_SCALES: Final = frozenset(
    {"scale missing", "scaled", "extra factor", "scale inverted", "sum for mean", "mean for sum"}
    | {"wrong sign"}
)


class SourceSearch:
    """The changes of one target's functions that put its gradients right."""

    def __init__(
        self,
        seen: WatchedTarget,
        draws: Sequence[Draw],
        runs: Sequence[TrialRun],
        wrong: Sequence[str],
        rng: np.random.Generator,
        work: Work,
        raised: TrialFault | None = None,
    ) -> None:
        """raised: what backward ends with, of which there are no gradients then."""
        self.work, self._raised = work, raised
        self.seen, self.runs = seen, runs
        self.wrong = tuple(wrong)
        self.trials = Trials(seen, draws, runs, wrong, rng, work)
        #: The line that puts a gradient right with the derivation's value, where no change does.
        self.put_right: dict[str, ast.stmt] = {}
        #: A long change that is told where there is none other.
        self._long: list[Hit] = []
        self._walk: tuple[tuple[str, ...], list[Hit], Iterator[None]] | None = None

    @cached_property
    def pieces(self) -> list[CodePiece]:
        """The user's functions that run in a pass; none where it leaves arrays and Python."""
        return self.seen.pieces

    @cached_property
    def standing(self) -> Standing | None:
        """The lines of backward by their values, None where the forward cannot be derived."""
        done = self.runs[0]
        derived = self.seen.swept(done)
        if derived is None or not self.seen.is_vouched(done, self.trials.draws[0].right):
            return None
        return Standing(derived, self.trials, self.pieces, self.raising)

    @cached_property
    def departures(self) -> Departures | None:
        """The search by right values of lines, None where the forward cannot be derived."""
        if self.standing is None:
            return None
        draws = (
            [self.runs[1]] if self.trials.moved is None else [self.runs[1], self.trials.moved.done]
        )
        others = [self.seen.swept(done) for done in draws]
        found = [self.standing.derived, *(each for each in others if each is not None)]
        if len(found) <= len(draws) or len({len(each.rights) for each in found}) > 1:
            return None
        return Departures(Interventions(self.pieces, self.trials, found), self.borrowed)

    @cached_property
    def borrowed(self) -> Borrowed:
        return Borrowed(self.pieces)

    @cached_property
    def changes(self) -> SizedChanges:
        return SizedChanges(self.pieces, self.borrowed, self.standing, self.work)

    def faults(self) -> list[list[Hit]]:
        """For each fault the changes that put it right, all equivalent, best first."""
        told: list[list[Hit]] = []
        rest = self.wrong
        inputs = sum(np.asarray(each).nbytes for each in self.runs[0].arrays.values())
        with bounded_memory(inputs), self.trials.silence(), ExitStack() as made:
            if self.departures is not None:
                made.enter_context(self.departures.interventions.possible())
            while rest and not self.work.over():
                found = self._hastily(rest)
                if not found and self.departures is not None:
                    with self.work.hurried(4):
                        found = self.departures.in_words(rest)
                if not found:
                    with self.work.hurried(2):
                        first, found = self._two(rest, made)
                    told += first
                spelled = [] if found else self._spelled(rest)
                found = found or self.hits(rest) or self._long or spelled
                if not found:
                    break
                while found:
                    same = [hit for hit in found if set(hit.covers) == set(found[0].covers)]
                    told.append(same)
                    rest = tuple(name for name in rest if name not in same[0].covers)
                    found = [hit for hit in found if set(hit.covers) <= set(rest)]
                    self._keep(same[0], made)
            if rest and self.departures is not None:
                self.put_right = self.departures.lines_of(rest)
        return told

    def _hastily(self, wrong: tuple[str, ...]) -> list[Hit]:
        """Hits in half of the work that is left, where right values are known to go on with."""
        if self.departures is None:
            return self.hits(wrong)
        with self.work.hurried(2):
            return self.hits(wrong)

    def _two(self, wrong: tuple[str, ...], made: ExitStack) -> tuple[list[list[Hit]], list[Hit]]:
        """A change that gives a line its right value, and those that put gradients right with it.

        The first stays made.
        """
        if self.departures is None:
            return [], []
        for guess in self.departures.guesses(wrong):
            if alone := self.trials.covered(guess.change, guess.piece, wrong):
                return [], [replace(guess, covers=alone)]
            before = self._walk, {**self.changes.listed}
            with ExitStack() as tried:
                self._keep(guess, tried)
                found = self._hastily(wrong) or self.departures.in_words(wrong)
            if found and not self._does_alone(found[0]):
                self._keep(guess, made)
                return [[replace(guess, covers=found[0].covers)]], found
            self._walk, self.changes.listed = before
            self.departures.forget()
            if found:
                return [], found
        return [], []

    def _spelled(self, wrong: tuple[str, ...]) -> list[Hit]:
        """A line as the derivation has it."""
        found = [] if self.departures is None else self.departures.spelled(wrong)
        return [each for each in found if not each.drops]

    def _does_alone(self, hit: Hit) -> bool:
        """Return whether a change that was found beside another puts the same right without it."""
        return {*self.trials.covered(hit.change, hit.piece, hit.covers)} >= {*hit.covers}

    def unfilled(self, name: str) -> ast.stmt | None:
        """The line of an array that is never written into, where this gradient is all zeros."""
        lines = self._unfilled if not np.any(self.runs[0].gradients[name]) else []
        return next(iter(lines), None)

    @cached_property
    def _unfilled(self) -> list[ast.Assign]:
        return list(unfilled(self._of_backward))

    @cached_property
    def _of_backward(self) -> list[CodePiece]:
        return [piece for piece in self.pieces if not piece.in_forward]

    @cached_property
    def raising(self) -> ast.stmt | None:
        """The line of backward by which it raises."""
        return None if self._raised is None else raising_line(self._raised, self._of_backward)

    def idle(self) -> ast.stmt | None:
        """A line of backward that does nothing, beside others or in a loop."""
        return idle(self._of_backward)

    def not_linear(self, name: str) -> tuple[ast.stmt, str] | None:
        """A line of backward by which a gradient is not linear in dy, and a sentence on it."""
        return not_linear(self.pieces, self.trials, name)

    def departing(self, name: str) -> ast.stmt | None:
        """The first line that this gradient, and none that is right, is made from by a value that
        the derived backward has not, out of values that it has; None where there is none.
        """
        if self.standing is None:
            return None
        unknown: set[str] = set()
        constants: set[str] = set()
        asked: set[ast.stmt] = set()
        for statement, right in self.standing.in_order():
            if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Return):
                continue
            if any(piece.in_forward for piece in self._around(statement)):
                continue
            names = [*values_in(statement)]
            made = {each.id for each in names if isinstance(each.ctx, ast.Store)}
            adds = made if isinstance(statement, ast.AugAssign) else set()
            read = adds | {each.id for each in names if isinstance(each.ctx, ast.Load)}
            if constants.issuperset(read):
                constants |= made  # of sizes and numbers alone, of which there are no gradients
                continue
            if right:
                unknown -= made
            elif unknown.isdisjoint(read - adds):
                unknown |= made
                if statement not in asked and self._makes(statement, name):
                    return statement
                asked.add(statement)
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
        made.callback(setattr, self.trials, "mended", {*self.trials.mended})
        if self.standing is not None:
            made.callback(self.standing.forget)
        self._walk = None
        self.changes.listed.pop(hit.piece, None)
        if self.departures is not None:
            self.departures.forget()
        made.enter_context(hit.change.made())
        made.enter_context(hit.piece.in_force(hit.piece.compiled()))
        self.trials.mended.update(hit.covers)
        if self.standing is not None:
            self.standing.forget()

    def hits(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The changes that put some of these gradients right and spoil none, best first.

        Where a line is known that is to give another value, its changes are; else all are tried.
        Where the work was over before, it goes on from there.
        """
        if self._walk is None or self._walk[0] != wrong:
            known: list[Hit] = []
            if self.departures is not None:
                with self.work.hurried(4):  # so that all changes are tried too
                    own = map(self._weighed, self.departures.hits(wrong))
                    known = [hit for hit in own if hit is not None]
            taken = self._of_unused(wrong)
            if taken and not (known and _least(known[0]) < _least(taken[0])):
                return taken
            if known:
                is_part = len(known[0].covers) < len(wrong)
                is_long = known[0].words > _LONG
                rivals = self._whole(wrong) if is_part or is_long else self._rivals(known[0])
                rivals = [hit for hit in rivals if hit.rank < known[0].rank]
                if rivals or not is_part or not is_long:
                    return rivals + known
            begun: list[Hit] = []
            self._long = known
            self._walk = wrong, begun, self._walked(wrong, begun)
        _, found, walk = self._walk
        for _ in walk:
            if self.work.over():
                break
        return sorted(found, key=lambda hit: hit.rank)

    def _of_unused(self, wrong: tuple[str, ...]) -> list[Hit]:
        """Changes that put all of these right, and take in what backward computes and never uses.

        Or an argument that it never uses, or write into an array that it leaves as zeros: that is
        what was left out.
        """
        names = {piece: unused(piece.tree) for piece in self._of_backward}
        found = self._covering(self.changes.stores(), wrong) if self._unfilled else []
        if not found and any(names.values()):
            found = self._covering(self.changes.taking_in(names), wrong)
        return found[:1]

    def _whole(self, wrong: tuple[str, ...]) -> list[Hit]:
        """Changes that put all of these right at once.

        One fault that several gradients are made from comes before one for each of them.
        """
        found: list[Hit] = []
        with self.work.hurried(4):
            for listed in self._in_order(wrong, whole=True):
                found += self._covering(listed, wrong)
                if self.work.over() or any(hit.words <= _LONG for hit in found):
                    break
        return sorted(found, key=lambda hit: hit.rank)

    def _covering(self, changes: Iterable[Sized], wrong: tuple[str, ...]) -> list[Hit]:
        """Those of some changes that put all of these right, best first.

        They are looked for in a quarter of the work that is left.
        """
        found: list[Hit] = []
        with self.work.hurried(4):
            for size, change, piece in changes:
                if self.work.over() or (found and size > found[0].words + NEAR):
                    break
                hit = attempt(partial(self._hit, size, change, piece, wrong), None)
                if hit is not None and len(hit.covers) == len(wrong):
                    found.append(hit)
        return sorted(found, key=lambda hit: hit.rank)

    def _rivals(self, known: Hit) -> list[Hit]:
        """Changes that put right all that a known one does, and come before it.

        They are of lines that it reads, or of the same kind.
        """
        assert self.departures is not None
        near = self.departures.near(known.covers) - {known.change.statement}
        kinds = _SCALES if known.change.kind in _SCALES else {known.change.kind}
        found: list[Hit] = []
        with self.work.hurried(4):
            for size, change, piece in self.changes.of(self._of_backward, weighed=False):
                if size > known.words or self.work.over():
                    break
                if change.kind not in kinds and change.statement not in near:
                    continue
                hit = attempt(partial(self._hit, size, change, piece, known.covers), None)
                if hit is not None and hit.rank < known.rank:
                    found.append(hit)
        return sorted(found, key=lambda hit: hit.rank)

    def _walked(self, wrong: tuple[str, ...], found: list[Hit]) -> Iterator[None]:
        """Changes one after another; those that hit are put into `found`.

        One of forward has to be smaller than those of backward, so no others are tried then.
        """
        is_one = all(piece.in_forward for piece in self.pieces)
        most = self.departures.most(wrong) if self.departures is not None else 0
        for listed in self._in_order(wrong):
            for size, change, piece in listed:
                whole = [hit.words for hit in found if len(hit.covers) >= (most or len(wrong))]
                near = -1.0 if piece.in_forward and not is_one else NEAR
                if whole and size > min(whole) + near:
                    break
                hit = attempt(partial(self._hit, size, change, piece, wrong), None)
                if hit is not None:
                    found.append(hit)
                yield

    def _in_order(self, wrong: tuple[str, ...], *, whole: bool = False) -> Iterator[list[Sized]]:
        """Changes near a line that is known, at places that reach wrong gradients alone, elsewhere,
        and of forward; before them, where a whole is a number times too large, those that scale.

        At places of backward that reach none of them, or not all of the whole, no change helps.
        """
        reached: dict[tuple[int, str, int | None], frozenset[str]] = {}

        def helps(each: Sized) -> bool:
            _, change, piece = each
            place = change.place
            key = (id(place.parent), place.field, place.index)
            if key not in reached:
                reached[key] = self._reached(change, piece, wrong)
            found = reached[key]
            return found.issuperset(wrong) if whole else not found.isdisjoint(wrong)

        if self.raising is not None:
            own = self._of_backward
            yield self.changes.of(own, with_makers(self.raising, own))
        if whole and any(map(self._is_scaled, wrong)):
            scaling = (
                each for each in self.changes.by_size(forward=False) if each[1].kind in _SCALES
            )
            yield [each for each in scaling if helps(each)]
        if self.departures is not None:
            near = self.departures.near(wrong)
            yield self.changes.of(self._of_backward, near)
        alone: list[Sized] = []
        rest: list[Sized] = []
        for each in self.changes.by_size(forward=False):
            if helps(each) or each[1].others:
                place = each[1].place
                found = reached[id(place.parent), place.field, place.index]
                (alone if found and found <= {*wrong} else rest).append(each)
        yield alone
        yield rest
        yield self.changes.by_size(forward=True)

    def _is_scaled(self, name: str) -> bool:
        """Return whether a gradient is a number times what it should be."""
        done, draw = self.runs[0], self.trials.draws[0]
        found, right = np.ravel(done.gradients[name]), np.ravel(draw.right[name])
        if found.shape != right.shape or not np.isfinite([*found, *right]).all():
            return False
        ratio = float(found @ right) / max(float(right @ right), 1e-300)
        size = float(np.max(np.abs(found), initial=0.0))
        return np.allclose(found, ratio * right, 0.0, 1e-6 * size)

    def _reached(self, change: Change, piece: CodePiece, wrong: tuple[str, ...]) -> frozenset[str]:
        """The gradients that other values at a place make others; `wrong` where it is unknown."""
        place = change.place
        probe = None if self.work.over() else probed(place)
        if probe is None:
            return frozenset(wrong)
        moved = self.trials.moved_by(replace(change, new=probe, others=()), piece)
        empty = {name for name in wrong if not np.size(self.runs[0].gradients[name])}
        return frozenset(wrong if moved is None else moved | empty)  # no other values show there

    def _hit(
        self, size: float, change: Change, piece: CodePiece, wrong: tuple[str, ...]
    ) -> Hit | None:
        covers = self.trials.covered(change, piece, wrong)
        if not covers:
            return None
        return self._weighed(Hit(change, piece, covers, written(change, piece), size, size))

    def _weighed(self, hit: Hit) -> Hit | None:
        """A change with what all lines count beside it; None for one that is right by chance."""
        if self.standing is None:
            return hit
        counts, settles = self.standing.after(hit.change, hit.piece)
        if adds_number(hit.change) and not settles:
            return None
        return replace(hit, size=size_of(hit.change, SourceWords()) + counts)


def _least(hit: Hit) -> tuple[int, int, tuple[float, ...]]:
    """The rank of a change by the gradients that it puts right and its words first."""
    return -len(hit.covers), round(hit.words), hit.rank
