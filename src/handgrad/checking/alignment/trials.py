"""Runs of a target with a changed function in force, judged on several draws."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from handgrad.checking.alignment.bounded import LoopLines
from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.checked import checked_memory
from handgrad.checking.alignment.kept import StateBefore, TooMuchError
from handgrad.checking.alignment.lines import LineValues
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.watched import WatchedTarget
from handgrad.checking.hypotheses import Draw
from handgrad.checking.trial import (
    Arrays,
    TrialFault,
    TrialRun,
    backward,
    close,
    contraction,
    leaves,
    like_nested,
    noise,
    random_like,
    size_known,
)
from handgrad.checking.trial import forward as run_forward
from handgrad.checking.work import COMPILED, PASS, Work
from handgrad.differences.directional import directional
from handgrad.forward_backward import ForwardBackward
from handgrad.program.source import nested

#: Of the directional derivative, beside the bound of the differences.
_RELATIVE = 1e-6
#: What is right has to be known this well, or a change proves nothing.
_KNOWN = 1e-4
#: A change that puts a gradient right may leave these parts of what was wrong, and of its size.
_LEFT = 0.1
_ROUNDING = 1e-9
#: Rows of longer inputs.
_ROWS = 7


@dataclass(frozen=True)
class Begun:
    """A draw of which forward has run: what it gave, and the state that it left."""

    y: Any
    cache: Any
    after: StateBefore


@dataclass(frozen=True)
class Moved:
    """Other inputs: a run at them, a direction, and the derivative of <y, dy> along it."""

    done: TrialRun
    directions: dict[str, np.ndarray]
    expected: dict[str, float]
    allowed: dict[str, float]


class Trials:
    """The target, with what is right on two cotangents and along directions at other inputs."""

    def __init__(
        self,
        seen: WatchedTarget,
        draws: Sequence[Draw],
        runs: Sequence[TrialRun],
        wrong: Sequence[str],
        rng: np.random.Generator,
        work: Work,
    ) -> None:
        functions = seen.functions
        self.functions, self.draws, self.runs, self.work = functions, draws, runs, work
        floats = {
            name for name, each in runs[0].gradients.items() if np.asarray(each).dtype.kind == "f"
        }
        self.rights = [name for name in functions.gradients if name in floats and name not in wrong]
        self.mended: set[str] = set()
        #: The draw that is run: 0, 1, or 2 at other inputs; and the number of the run.
        self.draw = self.number = 0
        self._elements = sum(map(np.size, runs[0].arrays.values()))
        self.moved = _moved(functions, runs[0], functions.gradients, rng)
        #: The same with other integers, so that what a change of them does is no chance.
        self.drawn = _moved(functions, runs[0], functions.gradients, rng, draws_integers=True)
        #: More rows, so that a size which equals another number by chance is told from it.
        self.longer: Moved | None = None
        self.lines = LoopLines()
        self.kept, self._seen = seen.kept, seen
        self._is_silent = False
        self._begun: tuple[list[CodeType], Begun | None] | None = None
        with self.kept.put_back(), self.lines.counted(), suppress(TrialFault):
            _, cache = run_forward(functions, runs[0].arrays)
            self._of_forward = self.lines.in_all
            backward(functions, copy.deepcopy(runs[0].dy), cache)
        for arrays in _longer(functions, runs[0].arrays, rng):
            self.longer = self.longer or self._in_order(_at(functions, arrays, rng))

    def _in_order(self, moved: Moved | None) -> Moved | None:
        """The same where backward runs there, and what is right stays so."""
        if moved is None:
            return None
        try:
            with self.quietly(2):
                held = self._elsewhere(moved, self.rights)
        except Exception:  # these are no rows
            return None
        return moved if len(held) == len(self.rights) else None

    def _begin(self, draw: int, without: int = 0) -> None:
        """Count a pass, without so many of its lines."""
        self.draw, self.number = draw, self.number + 1
        self.work.take(PASS, self.lines.in_all - without, self._elements)

    def _from_forward(self, piece: CodePiece) -> Begun | None:
        """The first draw after forward, where a change of this function leaves that as it is.

        None too where backward raises or gives something else when it is run again from there, for
        what it changes is not put back then.
        """
        if piece in self._seen.of_forward:
            return None
        codes = [each.functions[0].__code__ for each in self._seen.of_forward]
        if self._begun is None or self._begun[0] != codes:
            self._begun = codes, self._begun_anew()
        return self._begun[1]

    def _begun_anew(self) -> Begun | None:
        with self.quietly():
            y, cache = run_forward(self.functions, self.runs[0].arrays)
            try:
                after = StateBefore([self.functions, y, cache], draws=self.kept.draws)
            except TooMuchError:
                return None
            begun = Begun(y, cache, after)
            try:
                first, second = self._again(begun), self._again(begun)
            except TrialFault:
                return None
            return begun if is_equal(first.values(), second.values()) else None

    def _again(self, begun: Begun) -> dict[str, Any]:
        begun.after.restore()
        return backward(self.functions, copy.deepcopy(self.runs[0].dy), begun.cache)

    def moved_by(self, change: Change, piece: CodePiece) -> set[str] | None:
        """The gradients of the first draw that a change makes others; None where it raises.

        There are none where it makes y another, which no change of a backward does.
        """
        code = self._compiled(change, piece)
        if code is None:
            return None
        draw, begun = self.draws[0], self._from_forward(piece)
        try:
            with self.quiet(piece, code), self.lines.bounded():
                found = self._gradients(0, begun)
                if found is None:
                    return set()
        except Exception:  # an index, or a size, is no place for such values
            return None
        names = self.functions.gradients
        return {name for name in names if not _is_as_before(found[name], draw.found[name], draw.dy)}

    def line_values(
        self, pieces: Sequence[CodePiece], draw: int = 0, sign: float = 1.0
    ) -> LineValues:
        """The values that each line makes in a pass of this draw, or of −dy, as it is in force."""
        lines, done = LineValues(pieces), self.runs[draw]
        codes = {
            now: own
            for piece in pieces
            for now in nested(piece.functions[0].__code__)
            for own in nested(piece.code)
            if (now.co_name, now.co_firstlineno) == (own.co_name, own.co_firstlineno)
        }
        # The first line of a decorated one is that of its decorators, which are left out when it is
        # changed.
        codes |= {piece.functions[0].__code__: piece.code for piece in pieces}

        def run() -> None:
            _, cache = run_forward(self.functions, done.arrays)
            with suppress(TrialFault):
                backward(self.functions, like_nested(done.dy, lambda dy: sign * dy), cache)

        with self.quietly(draw):
            lines.watched(run, codes)
        return lines

    def _compiled(self, change: Change, piece: CodePiece) -> CodeType | None:
        """The code of a function with a change; None where there is none."""
        self.work.take(COMPILED)
        with change.made():
            try:
                return piece.compiled()
            except ValueError:
                return None

    @contextmanager
    def quiet(self, piece: CodePiece, code: Any) -> Iterator[None]:
        """A run with other code in force: what it leaves and prints is as if it had not been."""
        with piece.in_force(code), self.quietly():
            yield

    @contextmanager
    def quietly(self, draw: int = 0) -> Iterator[None]:
        """A run of which what it leaves and prints is as if it had not been."""
        self._begin(draw)
        silent = nullcontext() if self._is_silent else self.silence()
        with self.kept.put_back(), silent, checked_memory():
            yield

    @contextmanager
    def silence(self) -> Iterator[None]:
        """A block in which the user's code prints and warns of nothing, as it would often."""
        quiet, before = io.StringIO(), self._is_silent
        self._is_silent = True
        try:
            with (
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
                redirect_stdout(quiet),
                redirect_stderr(quiet),
            ):
                warnings.simplefilter("ignore")
                yield
        finally:
            self._is_silent = before

    def covered(
        self,
        change: Change,
        piece: CodePiece,
        wrong: tuple[str, ...],
        *,
        derived: bool = False,
        sized: bool = True,
    ) -> tuple[str, ...]:
        """The wrong gradients that a change puts right on every draw, if it spoils none.

        derived: it asks for values of derivations, which there are of the first draws alone.
        sized: it is to do so at other numbers of rows, too.
        """
        code = self._compiled(change, piece)
        if code is None:
            return ()
        begun = self._from_forward(piece)
        others = [self.moved] if derived else [self.moved, self.drawn]
        others += [self.longer] if sized and not derived else []
        try:
            with self.quiet(piece, code):
                found = wrong
                # Hardly any change gets further than this, so that it is run from forward's end.
                if begun is not None:
                    with self.lines.bounded():
                        found = self._on_draw(0, wrong, begun)
                    if not found:
                        return ()
                    self.kept.restore()
                for number in (0, 1):
                    with self.lines.bounded():
                        found = self._on_draw(number, found) if found else ()
                for moved in others:
                    with self.lines.bounded():
                        found = self._elsewhere(moved, found) if found and moved else found
                return found
        except Exception:  # the changed function does not run, or does not end
            return ()

    def _gradients(self, number: int, begun: Begun | None = None) -> dict[str, Any] | None:
        """The gradients of a draw, from what forward left where that is known; None where y is
        another.
        """
        done = self.runs[number]
        self._begin(number, 0 if begun is None else self._of_forward)
        if begun is None:
            y, cache = run_forward(self.functions, done.arrays)
        else:
            begun.after.restore()
            y, cache = begun.y, begun.cache
        if not _is_same(y, done.y):
            return None
        return backward(self.functions, copy.deepcopy(done.dy), cache)

    def _on_draw(
        self, number: int, names: Sequence[str], begun: Begun | None = None
    ) -> tuple[str, ...]:
        draw, found = self.draws[number], self._gradients(number, begun)
        if found is None:
            return ()
        right = tuple(n for n in names if _is_right(draw, n, found[n]))
        spoilt = [n for n in self.rights if not close(found[n], draw.found[n], draw.dy)]
        spoilt += [n for n in self.mended if not _is_right(draw, n, found[n])]
        return () if spoilt else right

    def _elsewhere(self, moved: Moved, names: Sequence[str]) -> tuple[str, ...]:
        self._begin(2)
        _, cache = run_forward(self.functions, moved.done.arrays)
        found = backward(self.functions, copy.deepcopy(moved.done.dy), cache)

        def holds(name: str) -> bool:
            if name not in moved.expected:
                return True
            terms = np.asarray(found[name]) * moved.directions[name]
            # As far as what is right is known at all, as beside a guard against a division by 0.
            known, right = self.draws[0].tolerances.get(name, 0.0), self.draws[0].right.get(name)
            part = 0.0 if right is None else known / max(size_known(right), 1e-300)
            apart = abs(float(np.sum(terms)) - moved.expected[name])
            return bool(apart <= moved.allowed[name] + part * np.sum(np.abs(terms)))

        return tuple(name for name in names if holds(name))


def _is_same(y: Any, other: Any) -> bool:
    pairs = zip(leaves(y), leaves(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def is_equal(some: Collection[Any], others: Collection[Any]) -> bool:
    """Return whether arrays are the same to the bit, in shape too."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(some, others, strict=False)]
    alike = all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
    return len(some) == len(others) and alike


def _is_as_before(found: Any, before: Any, dy: Any) -> bool:
    """Return whether a gradient is what it was, which need not be an array of floats."""
    if {np.asarray(found).dtype.kind, np.asarray(before).dtype.kind} == {"f"}:
        return close(found, before, dy)
    return bool(np.array_equal(found, before))


def _is_right(draw: Draw, name: str, found: Any) -> bool:
    now = draw.apart(name, found)
    # Most changes leave as much wrong as there was.
    if not now <= max(_LEFT * draw.departures[name], _ROUNDING * draw.sizes[name]):
        return False
    right = draw.right[name]
    if not np.any(np.isfinite(right)) or draw.tolerances[name] > _KNOWN * draw.sizes[name]:
        return False  # too little is known of what is right
    return draw.agrees(name, found, with_found=False)


def _moved(
    functions: ForwardBackward,
    done: TrialRun,
    names: Sequence[str],
    rng: np.random.Generator,
    *,
    draws_integers: bool = False,
) -> Moved | None:
    """Other inputs of floats, and of integers between those that there are.

    What no gradient is asked of stays, as a target that adds up to 1. None where forward does not
    take them or has a kink there, and without integers to draw.
    """
    kinds = {name: np.asarray(each).dtype.kind for name, each in done.arrays.items()}
    integers = [name for name in kinds if kinds[name] == "i" and np.size(done.arrays[name]) > 1]
    if draws_integers and not integers:
        return None
    arrays = {
        name: np.asarray(each * (1.0 + 0.1 * rng.uniform(-1, 1, np.shape(each))))
        if kinds[name] == "f" and name in names
        else each
        for name, each in done.arrays.items()
    }
    for name in integers if draws_integers else ():
        own: Any = arrays[name]
        arrays[name] = rng.integers(np.min(own), np.max(own) + 1, np.shape(own), own.dtype)
    return _at(functions, arrays, rng)


def _longer(
    functions: ForwardBackward, arrays: Mapping[str, Any], rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """The same inputs with a prime number of rows: all that have as many, or the first alone."""
    names = [name for name in functions.inputs if name not in functions.parameters]
    first = next((name for name in names if np.ndim(arrays[name])), None)
    count = 0 if first is None else len(arrays[first])
    if count < 2:
        return
    alike = [name for name in names if np.ndim(arrays[name]) and len(arrays[name]) == count]
    for changed in dict.fromkeys([(*alike,), (*alike[:1],)]):
        longer, other = dict(arrays), dict(arrays)
        for name in changed:
            rows = arrays[name][np.arange(_ROWS + (count == _ROWS)) % count]
            is_asked = name in functions.gradients and rows.dtype.kind == "f"
            longer[name] = rows * rng.uniform(0.9, 1.1, rows.shape) if is_asked else rows
            more = np.concatenate([longer[name][:count], 2 * longer[name][count:]])
            other[name] = more if is_asked else rows
        if _differ(functions, longer, other):
            yield longer


def _differ(functions: ForwardBackward, arrays: Arrays, others: Arrays) -> bool:
    """Return whether forward gives something else for others, as where it reads all rows."""
    try:
        with np.errstate(all="ignore"):
            (one, _), (other, _) = (run_forward(functions, each) for each in (arrays, others))
            return not _is_same(one, other)
    except Exception:  # these are no rows
        return False


def _at(
    functions: ForwardBackward, arrays: dict[str, Any], rng: np.random.Generator
) -> Moved | None:
    names = functions.gradients
    try:
        with np.errstate(all="ignore"):
            y, cache = run_forward(functions, arrays)
            again = TrialRun(arrays, y, cache, random_like(y, rng), {})
            value = contraction(functions, again)
            directions, expected, allowed = {}, {}, {}
            for name in names:
                direction = np.asarray(rng.standard_normal(np.shape(arrays[name])))
                found = directional(
                    value, dict(arrays), {name: direction}, noise=noise(functions, again)
                )
                if not np.isfinite(found.value) or not np.isfinite(found.bound):
                    continue
                directions[name], expected[name] = direction, found.value
                allowed[name] = 4.0 * found.bound + _RELATIVE * abs(found.value)
    except Exception:  # inputs of a special form, such as rows that add up to 1
        return None
    return Moved(again, directions, expected, allowed)
