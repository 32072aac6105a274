"""The proof of a pair: what is emitted is run beside the forward before anybody gets it.

It is run at two sets of sizes, at two values of every setting that is a number, in float64 and
float32, and at points where the pieces of a forward meet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.deriving.arguments import Path, Setting, at, flat
from handgrad.deriving.moving import (
    copied,
    largest,
    mapped_arrays,
    moved,
    replaced,
    rounded,
    single,
)
from handgrad.deriving.pair import DerivedPair
from handgrad.deriving.refusals import UnprovedError
from handgrad.deriving.samples import Sampler, called
from handgrad.program.node import Node


class Tolerances(NamedTuple):
    """By how much results and differences may be off."""

    #: A result elsewhere differs by no more than this share of the largest.
    same: float
    #: Steps of central differences, of which one has to agree, and by how much they may differ.
    steps: tuple[float, ...]
    near: float
    #: Differences to one side, by how much both may differ, and by how much a gradient from both.
    side: float
    smooth: float
    off: float


_DOUBLE: Final = Tolerances(1e-9, (1e-6, 1e-5, 1e-4, 1e-3, 1e-7, 1e-8), 2e-6, 1e-6, 1e-4, 1e-3)
#: Those of a forward that makes its arrays single.
_SINGLE: Final = Tolerances(1e-5, (1e-2, 3e-3, 3e-2), 1e-3, 1e-2, 2e-2, 4e-2)
#: Differences with two steps tell of one slope where they differ by no more than this part.
ALIKE: Final = 1e-3
#: Primitives whose derivatives go by the gaps between the values that they find.
_DECOMPOSITIONS: Final = frozenset({"eigh", "eig", "svd"})
#: Of more arrays than these, several are moved at once where pieces meet.
_MOST_ARRAYS: Final = 6


class MeetingError(UnprovedError):
    """The gradient is wrong at a smooth point, where pieces of the forward meet.

    is_number: it is no NaN there, which a root of 0 has made.
    """

    def __init__(self, why: str, *, is_number: bool) -> None:
        super().__init__(why)
        self.is_number = is_number


@dataclass
class Trial:
    """Arguments that a pair is run with, and in words what is special about them."""

    values: dict[str, Any]
    said: str
    is_first: bool = False
    #: The array that has other values than elsewhere.
    path: Path = ()
    setting: Path = ()


@dataclass
class Proof:
    """A pair with its functions for NumPy."""

    pair: DerivedPair
    sampler: Sampler
    functions: Mapping[str, Any]
    #: The forward's results have infinities on its example, as those of a mask do.
    has_infinite: bool = False

    @cached_property
    def is_single(self) -> bool:
        """Return whether the forward makes arrays single: its differences are rounded to that."""
        return any(node.op == "single" for node in self._nodes())

    @cached_property
    def _decomposes(self) -> bool:
        """Return whether the forward takes a matrix apart, by values that may be equal."""
        return any(node.op in _DECOMPOSITIONS for node in self._nodes())

    @cached_property
    def detaches(self) -> bool:
        """Return whether the forward takes some of its values as constant."""
        return any(node.op == "stop" for node in self._nodes())

    def _nodes(self) -> Iterator[Node]:
        """The nodes of the forward, those in loops too."""
        waiting = [self.pair.traced.program]
        while waiting:
            body = waiting.pop().body
            yield from body
            waiting += [node.attrs["loop"].body for node in body if node.op == "loop"]

    @property
    def tolerances(self) -> Tolerances:
        return _SINGLE if self.is_single else _DOUBLE

    def run(self) -> None:
        """Raises UnprovedError where something differs."""
        for trial in self.trials():
            try:
                self._gradients(trial)
            except UnprovedError as error:
                error.setting = trial.setting
                raise
        for trial, own in self._meetings():
            self._meets(trial, own)
        self._single()

    def trials(self) -> Iterator[Trial]:
        """The arguments of the trace, others at other sizes, and others at other settings."""
        rng = np.random.default_rng(3)
        first = self.sampler.lengths()
        yield Trial(self.sampler.draw(rng, first, examples=True), _said(first), True)
        seconds = self.sampler.others() if first else iter(())
        trials = (Trial(self.sampler.draw(rng, second), _said(second)) for second in seconds)
        yield from itertools.islice(filter(self._takes, trials), 1)
        for setting in self.sampler.arguments.settings:
            if not setting.is_free or (setting.letter and setting.letter != setting.name):
                continue
            for other in other_values(setting):
                given, said = {setting.path: other}, f"{setting.name} = {other}"
                trial = Trial(self.sampler.draw(rng, first, given), said, setting=setting.path)
                if not self._takes(trial):
                    trial.values = self.sampler.draw(rng, first, given, examples=True)
                yield trial

    def _takes(self, trial: Trial) -> bool:
        """Return whether both forwards take these arguments, with numbers for results.

        Arrays of integers, such as the edges of a graph, are drawn without what holds among them.
        """
        try:
            if self.forward(trial)[2]:
                return False
        except UnprovedError:  # which the trial says where the user's own forward does not fail
            pass
        own = self._own(trial.values)
        if own is None or not all(x.size and self._is_known(x) for x in own):
            return False
        # A matrix without an inverse at these sizes has one by rounding, which tells nothing.
        near = self._own(mapped_arrays(trial.values, rounded), trial.values)
        return near is None or all(map(self._is_same, near, own))

    def _is_same(self, a: Any, b: Any) -> bool:
        """Return whether results are those that are wanted, but for rounding."""
        by, scale = self.tolerances.same, largest(b) or 1.0
        same = partial(np.allclose, rtol=by, atol=by * scale, equal_nan=True)
        return np.shape(a) == np.shape(b) and bool(same(a, b))

    def _is_known(self, x: Any) -> bool:
        """True for numbers; infinities among them where the example's results have such."""
        finite = np.isfinite(x)
        masked = self.has_infinite and np.any(finite) and not np.any(np.isnan(x))
        return bool(np.all(finite) or masked)

    def _gradients(self, trial: Trial) -> None:
        own = self._own(trial.values)
        if own is None and not trial.is_first:
            return
        y, cache, refused = self.forward(trial)
        if refused:
            return
        ys = flat(y)
        if own is None or len(ys) != len(own):
            raise UnprovedError(f"the forward fails where {trial.said}")
        if not all(map(self._is_same, ys, own)):
            raise UnprovedError(
                f"the emitted forward has other values than the forward where {trial.said}"
            )
        if trial.is_first:
            self.has_infinite = any(np.any(np.isinf(each)) for each in own)
        if not all(map(self._is_known, own)):
            if trial.is_first:
                raise UnprovedError("the forward has values that are not finite on its example")
            return
        dys = cotangents(np.random.default_rng(5), own)
        gradients = self.backward(dys, cache, trial.said)
        for path, gradient in zip(self.pair.wanted, gradients, strict=True):
            self._along(trial, path, gradient, dys, own)

    @np.errstate(invalid="ignore")
    def _along(
        self, trial: Trial, path: Path, gradient: Any, dys: list[Any], own: list[Any]
    ) -> None:
        x = np.asarray(at(trial.values, path), float)
        name = "_".join(map(str, path))
        if np.shape(gradient) != x.shape:
            raise UnprovedError(f"d{name} has shape {np.shape(gradient)}, not {x.shape}")
        way = np.random.default_rng(6).standard_normal(x.shape)
        exact = float(np.sum(gradient * way))
        size = float(np.sum(np.abs(gradient * way))) + sum(
            float(np.sum(np.abs(a * dy), where=dy != 0)) for a, dy in zip(own, dys, strict=True)
        )
        slopes = []
        for step in self.tolerances.steps:
            h = step * max(1.0, float(np.max(np.abs(x), initial=0.0)))
            ends = [
                self._own(replaced(trial.values, path, x + s * h * way), trial.values)
                for s in (1, -1)
            ]
            if ends[0] is None or ends[1] is None:
                continue
            slopes.append(_slope(ends[0], ends[1], dys, 2 * h))
            if (
                abs(slopes[-1] - exact)
                <= self.tolerances.near * (abs(exact) + size) + 1e-9 / step * 1e-6
            ):
                return
        if slopes and any(np.isfinite(slopes)):
            refusal = UnprovedError(
                f"d{name} differs from differences of the forward where {trial.said} "
                f"({exact:.6g}, {slopes[0]:.6g})"
            )
            pairs = itertools.pairwise(sorted(slope for slope in slopes if np.isfinite(slope)))
            refusal.is_rough = not any(abs(a - b) <= ALIKE * (abs(a) + abs(b)) for a, b in pairs)
            if refusal.is_rough and len(self.pair.wanted) > 1:
                refusal.array = name
            raise refusal
        if trial.is_first:
            raise UnprovedError(f"the forward has no differences in {name} on its example")

    # Where pieces meet

    def _meetings(self) -> Iterator[tuple[Trial, list[Any]]]:
        """Arguments with one array of zeros, or of equal elements, and the forward's results."""
        rng = np.random.default_rng(7)
        lengths = self.sampler.lengths()
        usual = self._own(self.sampler.draw(rng, lengths, examples=True))
        computed = {spec.path for spec in self.sampler.arguments.specs if spec.is_computed}
        for path in self.pair.wanted:
            if path in computed:
                continue
            for value, said in ((0.0, "0"), (0.75, "the same everywhere")):
                values = self.sampler.draw(rng, lengths, examples=True)
                x = np.full(np.shape(at(values, path)), value)
                said = f"{'_'.join(map(str, path))} is {said}"
                trial = Trial(replaced(values, path, x), said, path=path)
                own = self._own(trial.values)
                # Where results have other shapes than elsewhere nothing is smooth.
                if own is not None and _shapes(own) == _shapes(usual or ()):
                    yield trial, own

    def _meets(self, trial: Trial, own: list[Any]) -> None:
        """Where differences to both sides agree the point is smooth, and the gradient has to."""
        if not all(np.all(np.isfinite(each)) for each in own):
            return
        rng, side = np.random.default_rng(8), self.tolerances.side
        dys = [rng.standard_normal(np.shape(each)) for each in own]
        try:
            y, cache, refused = self.forward(trial)
            if refused or not all(np.allclose(a, b) for a, b in zip(flat(y), own, strict=True)):
                return  # at a tie, whose order libraries do not say
            gradients = self.backward(dys, cache, trial.said)
        except UnprovedError as error:
            if isinstance(error.__cause__, np.linalg.LinAlgError):
                return  # a decomposition has no derivative there
            raise
        found = dict(zip(self.pair.wanted, gradients, strict=True))
        if self._decomposes and not all(np.all(np.isfinite(each)) for each in gradients):
            return  # its vectors or values have no derivative there
        for paths in self._together(trial):
            ways = {p: rng.standard_normal(np.shape(at(trial.values, p))) for p in paths}
            ends = [
                self._own(moved(trial.values, ways, h), trial.values)
                for h in (side, -side, side / 4)
            ]
            up, down, closer = ends
            if up is None or down is None or closer is None:
                continue
            right, left = _slope(up, own, dys, side), _slope(own, down, dys, side)
            again = _slope(closer, own, dys, side / 4)
            parts = [found[path] * way for path, way in ways.items()]
            exact = sum(float(np.sum(each)) for each in parts)
            size = sum(float(np.sum(np.abs(each))) for each in parts)
            size += abs(right) + abs(left) + 1e-3
            rounding = (
                np.finfo(float).eps
                / side
                * sum(float(np.sum(np.abs(a * dy))) for a, dy in zip(own, dys, strict=True))
            )
            if rounding > self.tolerances.off * size:
                continue  # such as results of 1e30, of which differences have no digit
            spread = max(abs(right - left), abs(right - again))
            if not spread <= self.tolerances.smooth * (abs(right) + abs(left) + 1e-3):
                continue
            if not abs(exact - right) <= self.tolerances.off * size:
                if not self._is_linear(trial, ways, own, dys):
                    continue
                if not np.isfinite(exact) and self._is_at_an_end(trial, own):
                    continue
                names = " and ".join("d" + "_".join(map(str, path)) for path in paths)
                raise MeetingError(
                    f"{names} differs from differences on both sides where {trial.said} "
                    f"({exact:.6g}, {right:.6g})",
                    is_number=bool(np.isfinite(exact)),
                )

    def _is_at_an_end(self, trial: Trial, own: list[Any]) -> bool:
        """Return whether the forward is defined at the meeting, but not on all sides of it.

        There a division by zero or log 0 may cancel in the results, and not in their slopes.
        """
        side, x = self.tolerances.side, at(trial.values, trial.path)
        way = np.random.default_rng(13).standard_normal(np.shape(x))
        for step in (side, -side):
            end = self._own(moved(trial.values, {trial.path: step * way}, 1.0), trial.values)
            near = self.tolerances.smooth
            if end is None or not all(map(partial(np.allclose, rtol=near, atol=near), end, own)):
                return True
        return False

    def _is_linear(
        self, trial: Trial, ways: Mapping[Path, Any], own: list[Any], dys: list[Any]
    ) -> bool:
        """Return whether the slope along a sum of directions is the sum of their slopes.

        That of a median is not, though where all is equal both sides have the same along each.
        """
        rng, side = np.random.default_rng(12), self.tolerances.side
        others = {path: rng.standard_normal(np.shape(way)) for path, way in ways.items()}
        both = {path: way + others[path] for path, way in ways.items()}
        ends = [self._own(moved(trial.values, w, side), trial.values) for w in (ways, others, both)]
        slopes = [np.nan if end is None else _slope(end, own, dys, side) for end in ends]
        size = sum(map(abs, slopes)) + 1e-3
        return bool(abs(slopes[0] + slopes[1] - slopes[2]) <= self.tolerances.smooth * size)

    def _together(self, trial: Trial) -> list[list[Path]]:
        """The arrays that are moved at once: each alone, but of many those that are as elsewhere
        all together, so that a proof takes no more runs for each array than there are.
        """
        if len(self.pair.wanted) <= _MOST_ARRAYS:
            return [[path] for path in self.pair.wanted]
        return [[trial.path], [path for path in self.pair.wanted if path != trial.path]]

    # Single precision

    def _single(self) -> None:
        """Raises UnprovedError where gradients of float32 are not float32, or far from right."""
        values = self.sampler.draw(np.random.default_rng(9), self.sampler.lengths(), examples=True)
        y, cache, refused = self.forward(Trial(values, "its example"))
        if refused:
            return
        rng = np.random.default_rng(10)
        dys = cotangents(rng, flat(y))
        wanted = self.backward(dys, cache, "its example")
        low = single(values)
        with np.errstate(all="ignore"):
            y, cache = called(self.functions["forward"], self.sampler.arguments.parameters, low)
            kinds = [np.asarray(each).dtype for each in flat(y)]
            if not self.pair.floats_alike and self._widens(kinds, low):
                raise WiderError
            given = [dy.astype(kind) for dy, kind in zip(dys, kinds, strict=True)]
            found = self.backward(given, cache, "arrays are of float32")
        for k, (one, two) in enumerate(zip(found, wanted, strict=True)):
            if np.asarray(one).dtype != np.float32 and np.float64 not in kinds:
                raise DoubleError(k)
            scale = float(np.max(np.abs(two), initial=0.0)) or 1.0
            if np.all(np.isfinite(two)) and not np.all(np.isfinite(one)):
                raise UnprovedError(f"a gradient is not finite in float32, where {scale} is")

    def _widens(self, kinds: list[Any], low: Mapping[str, Any]) -> bool:
        """Return whether results are doubles that the forward itself has in single precision."""
        own = self._own(low) or ()
        return any(
            kind == np.float64 and each.dtype == np.float32
            for kind, each in zip(kinds, own, strict=False)
        )

    # Running

    def _own(
        self, values: Mapping[str, Any], base: Mapping[str, Any] | None = None
    ) -> list[Any] | None:
        """The results of the user's forward; None where it fails.

        base: the arguments that these are moved from.
        """
        try:
            return self.pair.traced.results(copied(dict(values)), base)
        except Exception:  # arguments that it does not take
            return None

    def forward(self, trial: Trial) -> tuple[Any, Any, bool]:
        """The emitted forward's results, and whether it refuses these arguments in a sentence."""
        try:
            with np.errstate(all="ignore"):
                parameters = self.sampler.arguments.parameters
                y, cache = called(self.functions["forward"], parameters, copied(trial.values))
        except Exception as error:
            if isinstance(error, ValueError) and "; allowed: " in str(error):
                if not trial.is_first:
                    return None, None, True
                if " is True at " in str(error) or " is False at " in str(error):
                    raise UnprovedError(
                        f"the way that the forward goes changes with the numbers of its arrays "
                        f"({str(error).partition('; allowed: ')[0]}); write np.where, or a loop "
                        "whose rounds no value decides"
                    ) from error
            raise UnprovedError(
                f"the emitted forward fails where {trial.said} ({type(error).__name__}: {error})"
            ) from error
        return y, cache, False

    def backward(self, dys: list[Any], cache: Any, said: str) -> list[Any]:
        try:
            with np.errstate(all="ignore"):
                found = self.functions["backward"](tuple(dys) if len(dys) > 1 else dys[0], cache)
        except Exception as error:
            raise UnprovedError(
                f"the emitted backward fails where {said} ({type(error).__name__}: {error})"
            ) from error
        return list(found) if isinstance(found, tuple) else [found]


def _shapes(results: Iterable[Any]) -> list[tuple[int, ...]]:
    return [np.shape(each) for each in results]


class DoubleError(Exception):
    """A gradient of float32 arrays is of double precision; its place among the gradients."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class WiderError(Exception):
    """The emitted forward has results of double precision where the forward has none."""


def other_values(setting: Setting) -> tuple[Any, ...]:
    """Further values of a setting that is a number."""
    value = setting.value
    if setting.tried is not None:
        return value, setting.tried + 1
    if isinstance(value, int):
        return value + 1, 2 * value
    return 1.25 * value + 0.1, 0.5 * value + 0.05


def cotangents(rng: np.random.Generator, results: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Random ones; 0 where a result is infinite, such as a mask's, which has no differences."""
    drawn = [rng.standard_normal(np.shape(each)) for each in results]
    return [np.where(np.isfinite(y), dy, 0.0) for y, dy in zip(results, drawn, strict=True)]


@np.errstate(invalid="ignore")
def _slope(up: list[Any], down: list[Any], dys: list[Any], width: float) -> float:
    """The difference quotient against a cotangent; NaN where the results have other shapes."""
    if any(np.shape(a) != np.shape(b) for a, b in zip(up, down, strict=True)):
        return np.nan
    pairs = zip(up, down, dys, strict=True)
    return sum(float(np.sum((a - b) * dy, where=dy != 0)) for a, b, dy in pairs) / width


def _said(lengths: Mapping[str, int]) -> str:
    return ", ".join(f"{x} = {n}" for x, n in lengths.items()) or "it is run on its example"
