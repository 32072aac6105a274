"""The search: changes in the order of their size, until one puts right what is wrong.

Of equivalent changes the smallest edit of the source is told. Several faults are put right one
after another.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, product, takewhile
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.borrowing import Borrowed
from handgrad.checking.alignment.changes import Change, Place, probed
from handgrad.checking.alignment.departures import Departures
from handgrad.checking.alignment.generators import changes, varied
from handgrad.checking.alignment.hits import Hit, Sized, is_of_name
from handgrad.checking.alignment.interventions import Interventions
from handgrad.checking.alignment.linearity import not_linear
from handgrad.checking.alignment.pieces import Call, CodePiece, Function, observed, pieces
from handgrad.checking.alignment.pool import SweptForward, derivation
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.standing import Standing
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.alignment.unused import takes_in, unfilled, unused
from handgrad.checking.alignment.written import written
from handgrad.checking.attempts import attempt
from handgrad.checking.hypotheses import Draw
from handgrad.checking.trial import TrialRun, backward
from handgrad.checking.trial import forward as run_forward
from handgrad.checking.work import CHANGE, Work
from handgrad.forward_backward import ForwardBackward

#: Changes of so many words more are told as rivals of the smallest.
NEAR: Final = 2.0
#: What a smaller change saves in words, of which some count as shares.
_SMALLER: Final = 0.1
#: Words of a change of some of the wrong gradients that comes after those of all.
_LONG: Final = 4.5
#: Kinds of changes by which all that comes after is multiplied by a number.
_SCALES: Final = frozenset(
    {"scale missing", "scaled", "extra factor", "scale inverted", "sum for mean", "mean for sum"}
    | {"wrong sign"}
)
#: The words that a change counts more at a line that makes right values already, and less where it
#: makes them.
_RIGHT: Final = 3.0
_SETTLED: Final = 1.5


class SourceSearch:
    """The changes of one target's functions that put its gradients right."""

    def __init__(
        self,
        functions: ForwardBackward,
        draws: Sequence[Draw],
        runs: Sequence[TrialRun],
        wrong: Sequence[str],
        rng: np.random.Generator,
        work: Work,
    ) -> None:
        self.work = work
        self.functions, self.runs = functions, runs
        self.wrong = tuple(wrong)
        self.trials = Trials(functions, draws, runs, wrong, rng, work)
        self._listed: dict[bool, list[Sized]] = {}
        #: A long change that is told where there is none other.
        self._long: list[Hit] = []
        self._walk: tuple[tuple[str, ...], list[Hit], Iterator[None]] | None = None

    @cached_property
    def pieces(self) -> list[CodePiece]:
        """The user's functions that run in a pass; none where it leaves arrays and Python."""
        return self._seen[0]

    @property
    def _entry(self) -> Call | None:
        """The first call of forward's."""
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[list[CodePiece], Call | None]:
        done = self.runs[0]
        with self.trials.kept.put_back():
            before = observed(lambda: run_forward(self.functions, done.arrays))
            _, cache = before.result
            dy = copy.deepcopy(done.dy)
            after = observed(lambda: backward(self.functions, dy, cache))
        if before.leads_out or after.leads_out:
            return [], None
        return pieces(before.calls, after.calls), next(iter(before.calls.values()), None)

    @cached_property
    def standing(self) -> Standing | None:
        """The lines of backward by their values, None where the forward cannot be derived."""
        derived = self._derived(self.runs[0], self._entry, self.trials.draws[0].right)
        return None if derived is None else Standing(derived, self.trials, self.pieces)

    @cached_property
    def departures(self) -> Departures | None:
        """The search by right values of lines, None where the forward cannot be derived."""
        if self.standing is None:
            return None
        draws: list[tuple[TrialRun, Call | None]] = [(self.runs[1], self._entry)]
        if self.trials.moved is not None:
            moved = self.trials.moved.done
            with self.trials.kept.put_back():
                calls = observed(lambda: run_forward(self.functions, moved.arrays)).calls
            draws.append((moved, next(iter(calls.values()), None)))
        others = [self._derived(done, entry, {}) for done, entry in draws]
        found = [self.standing.derived, *(each for each in others if each is not None)]
        if len(found) <= len(draws) or len({len(each.rights) for each in found}) > 1:
            return None
        return Departures(Interventions(self.pieces, self.trials, found), self.borrowed)

    def _derived(
        self, done: TrialRun, entry: Call | None, right: Mapping[str, Any]
    ) -> SweptForward | None:
        own = [piece for piece in self.pieces if entry is not None and piece.code is entry.code]
        if not own or entry is None:
            return None
        dy = done.dy
        if all(each.in_forward for each in self.pieces) and np.size(dy) == 1:
            # Gradients made beside the loss know no dy: what comes back is times dy.
            right = {name: each / float(dy) for name, each in right.items()}
            dy = np.ones_like(dy)
        with self.trials.kept.put_back():
            return derivation(own[0].called(entry), entry.given, dy, right)

    @cached_property
    def borrowed(self) -> Borrowed:
        return Borrowed(self.pieces)

    def faults(self) -> list[list[Hit]]:
        """For each fault the changes that put it right, all equivalent, best first."""
        told: list[list[Hit]] = []
        rest = self.wrong
        with ExitStack() as made:
            if self.departures is not None:
                made.enter_context(self.departures.interventions.possible())
            while rest and not self.work.over():
                found = self._hastily(rest)
                if not found and self.departures is not None:
                    found = self.departures.in_words(rest)
                if not found:
                    with self.work.hurried(2):
                        first, found = self._two(rest, made)
                    told += first
                found = found or self.hits(rest) or self._long
                if not found:
                    break
                while found:
                    same = [hit for hit in found if set(hit.covers) == set(found[0].covers)]
                    told.append(same)
                    rest = tuple(name for name in rest if name not in same[0].covers)
                    found = [hit for hit in found if set(hit.covers) <= set(rest)]
                    self._keep(same[0], made)
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
            with ExitStack() as tried:
                before = self._walk, self._listed
                self._keep(guess, tried)
                found = self._hastily(wrong) or self.departures.in_words(wrong)
                if found:
                    made.push(tried.pop_all())
                    return [[replace(guess, covers=found[0].covers)]], found
            self._walk, self._listed = before
            self.departures.forget()
        return [], []

    def unfilled(self, name: str) -> ast.stmt | None:
        """The line of an array that is never written into, where this gradient is all zeros."""
        lines = self._unfilled if not np.any(self.runs[0].gradients[name]) else []
        return next(iter(lines), None)

    @cached_property
    def _unfilled(self) -> list[ast.Assign]:
        """The lines of arrays of backward's that nothing is written into."""
        found = []
        for function, call in self._regions:
            scope = CallScope(function, call)
            for line in unfilled(function):
                array = scope.array(line.targets[0])
                if array is not None and (not array.any() or "empty" in ast.unparse(line.value)):
                    found.append(line)
        return found

    @property
    def _regions(self) -> Iterator[tuple[Function, Call]]:
        """The functions of backward."""
        own = (piece for piece in self.pieces if not piece.in_forward)
        return (region for piece in own for region in piece.regions)

    def idle(self) -> ast.stmt | None:
        """A line of backward that does nothing, beside others or in a loop."""
        blocks = (node for function, _ in self._regions for node in ast.walk(function))
        own = (each for each in blocks if isinstance(each, ast.FunctionDef | ast.For))
        lines = (line for block in own for line in block.body)
        return next((line for line in lines if isinstance(line, ast.Pass)), None)

    def not_linear(self) -> tuple[ast.stmt, str] | None:
        """A line of backward by which what it gives is not linear in dy, and a sentence on it."""
        return not_linear(self.pieces, self.trials)

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
            if any(piece.in_forward for piece in self._around(statement)):
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
        self._walk, self._listed = None, {}
        if self.departures is not None:
            self.departures.forget()
        made.enter_context(hit.change.made())
        made.enter_context(hit.piece.in_force(hit.piece.compiled()))
        self.trials.mended.update(hit.covers)

    def hits(self, wrong: tuple[str, ...]) -> list[Hit]:
        """The changes that put some of these gradients right and spoil none, best first.

        Where a line is known that is to give another value, its changes are; else all are tried.
        Where the work was over before, it goes on from there.
        """
        if self._walk is None or self._walk[0] != wrong:
            known: list[Hit] = []
            taken = self._of_unused(wrong)
            if self.departures is not None:
                with self.work.hurried(4):  # so that all changes are tried too
                    known = self.departures.hits(wrong)
            if taken and not (known and known[0].rank < taken[0].rank):
                return taken
            if known:
                whole = self._whole(wrong) if len(known[0].covers) < len(wrong) else []
                better = whole or self._smaller(known[0])
                if better or len(known[0].covers) == len(wrong) or known[0].words <= _LONG:
                    return better or known
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
        names = {piece: unused(piece.tree) for piece in self.pieces if not piece.in_forward}
        found = self._covering(self._stores(), wrong) if self._unfilled else []
        if not found and any(names.values()):
            found = self._covering(self._taking_in(names), wrong)
        return found[:1]

    def _stores(self) -> Iterator[Sized]:
        """Lines that write into an array of backward's."""
        known: dict[ast.AST, list[str]] = {}
        for piece in (each for each in self.pieces if not each.in_forward):
            for function, call in piece.regions:
                for change in self.borrowed.stores.changes(CallScope(function, call)):
                    yield size_of(change, known), change, piece

    def _taking_in(self, names: Mapping[CodePiece, frozenset[str]]) -> Iterator[Sized]:
        """The changes of backward that read one of these variables of their piece."""
        for size, change, piece in self._by_size(forward=False):
            if takes_in(change, names.get(piece, frozenset())):
                yield size, change, piece

    def _whole(self, wrong: tuple[str, ...]) -> list[Hit]:
        """Changes that put all of these right at once.

        One fault that several gradients are made from comes before one for each of them.
        """
        return self._covering(chain.from_iterable(self._in_order(wrong, whole=True)), wrong)

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

    def _smaller(self, known: Hit) -> list[Hit]:
        """Smaller changes of lines that a known one reads, which put right all that it does.

        Of lines that are names for others, those that are as small.
        """
        assert self.departures is not None
        near = self.departures.near(known.covers) - {known.change.statement}
        near -= self.standing.called | self.standing.settled if self.standing is not None else set()
        for size, change, piece in sorted(self._sized(self.pieces, near, weighed=False), key=_size):
            if size > known.size or self.work.over():
                break
            if size > known.size - _SMALLER and not is_of_name(change):
                continue
            hit = attempt(partial(self._hit, size, change, piece, known.covers), None)
            if hit is not None and len(hit.covers) == len(known.covers):
                return [hit]
        return []

    def _walked(self, wrong: tuple[str, ...], found: list[Hit]) -> Iterator[None]:
        """Changes one after another; those that hit are put into `found`."""
        most = self.departures.most(wrong) if self.departures is not None else 0
        for listed in self._in_order(wrong):
            for size, change, piece in listed:
                whole = [hit.words for hit in found if len(hit.covers) >= (most or len(wrong))]
                if whole and size > min(whole) + NEAR:
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

        if whole and any(map(self._is_scaled, wrong)):
            scaling = (each for each in self._by_size(forward=False) if each[1].kind in _SCALES)
            yield [each for each in scaling if helps(each)]
        yield sorted((each for piece in self.pieces for each in self._solved(piece)), key=_size)
        if self.departures is not None:
            near = self.departures.near(wrong)
            own = [piece for piece in self.pieces if not piece.in_forward]
            yield sorted(self._sized(own, near), key=_size)
        alone: list[Sized] = []
        rest: list[Sized] = []
        for each in self._by_size(forward=False):
            if helps(each) or each[1].others:
                place = each[1].place
                found = reached[id(place.parent), place.field, place.index]
                (alone if found and found <= {*wrong} else rest).append(each)
        yield alone
        yield rest
        yield self._by_size(forward=True)

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
        text, follows = written(change, piece), self._follows(change)
        return Hit(change, piece, covers, text, size, weighed, follows)

    def _follows(self, change: Change) -> bool:
        return self.standing is not None and self.standing.follows(change.statement)

    def _by_size(self, *, forward: bool) -> list[Sized]:
        if forward not in self._listed:
            self._listed[forward] = self._list(forward=forward)
        return self._listed[forward]

    def _list(self, *, forward: bool) -> list[Sized]:
        is_one = all(piece.in_forward for piece in self.pieces)
        own = [piece for piece in self.pieces if (piece.in_forward and not is_one) == forward]
        with self.work.hurried(1):  # it is kept for later shares, and so has all that is left
            return sorted(takewhile(lambda _: not self.work.over(), self._sized(own)), key=_size)

    def _sized(
        self, own: list[CodePiece], only: Container[Any] | None = None, *, weighed: bool = True
    ) -> Iterator[Sized]:
        """Changes with their words, and more at lines that make right values where `weighed`."""
        known: dict[ast.AST, list[str]] = {}
        for piece, inserted in product(own, (False, True)):
            for change in changes(piece, self.borrowed, inserted=inserted, only=only):
                self.work.take(CHANGE)
                more = _RIGHT * (weighed and self._is_right(change))
                yield size_of(change, known) + more, change, piece

    def _solved(self, piece: CodePiece) -> Iterator[Sized]:
        standing = self.standing
        known: dict[ast.AST, list[str]] = {}
        for function, call in piece.regions if standing is not None else ():
            assert standing is not None
            scope = CallScope(function, call)
            for place, statement, variant in standing.solved(scope):
                change = varied(place, variant, statement, scope)
                yield size_of(change, known), change, piece

    def _is_right(self, change: Change) -> bool:
        """Return whether the line of a change makes right values as it is."""
        return self.standing is not None and self.standing.of.get(change.statement) is True


def _size(each: Sized) -> float:
    return each[0]
