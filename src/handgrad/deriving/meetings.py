"""The proof where the pieces of a forward meet: arrays of zeros, and of equal elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.deriving.arguments import Path, at, flat
from handgrad.deriving.beside import Beside, Trial, slope_of, weight
from handgrad.deriving.moving import moved, replaced
from handgrad.deriving.refusals import UnprovedError

#: Several arrays are moved at once where there are more than these.
MOST_ARRAYS: Final = 6
#: The distance from the end of a domain at which its inside is looked at.
_INSIDE: Final = 1e-2


class MeetingError(UnprovedError):
    """The gradient is wrong at a smooth point, where pieces of the forward meet.

    is_number: it is no NaN there, which a root of 0 has made.
    """

    def __init__(self, why: str, *, is_number: bool) -> None:
        super().__init__(why)
        self.is_number = is_number


@dataclass(frozen=True)
class Meetings:
    """The points of a proof where pieces meet: a smooth one has the slope of both sides."""

    beside: Beside

    def run(self) -> None:
        """Raises MeetingError where the gradient of a smooth point is wrong."""
        for trial, own in self._meetings():
            self._meets(trial, own)

    def _meetings(self) -> Iterator[tuple[Trial, list[Any]]]:
        """Arguments with one array of zeros, or of equal elements, and the forward's results."""
        rng = np.random.default_rng(7)
        lengths = self.beside.sampler.lengths()
        usual = self.beside.own(self.beside.sampler.draw(rng, lengths, examples=True))
        computed = {spec.path for spec in self.beside.sampler.arguments.specs if spec.is_computed}
        for path in self.beside.pair.wanted:
            if path in computed:
                continue
            for value, said in ((0.0, "0"), (0.75, "the same everywhere")):
                values = self.beside.sampler.draw(rng, lengths, examples=True)
                x = np.full(np.shape(at(values, path)), value)
                said = f"{'_'.join(map(str, path))} is {said}"
                trial = Trial(replaced(values, path, x), said, path=path)
                own = self.beside.own(trial.values)
                # Nothing is smooth where results have other shapes than elsewhere.
                if own is not None and _shapes(own) == _shapes(usual or ()):
                    yield trial, own

    def _meets(self, trial: Trial, own: list[Any]) -> None:
        """The gradient has to agree with differences to both sides where these do."""
        if not all(np.all(np.isfinite(each)) for each in own):
            return
        rng, side = np.random.default_rng(8), self.beside.tolerances.side
        dys = [rng.standard_normal(np.shape(each)) for each in own]
        try:
            y, cache, refused = self.beside.forward(trial)
            if refused or not all(np.allclose(a, b) for a, b in zip(flat(y), own, strict=True)):
                return  # at a tie, whose order libraries do not say
            gradients = self.beside.backward(dys, cache, trial.said)
        except UnprovedError as error:
            if isinstance(error.__cause__, np.linalg.LinAlgError):
                return  # a decomposition has no derivative there
            raise
        found = dict(zip(self.beside.pair.wanted, gradients, strict=True))
        if self.beside.decomposes and not all(np.all(np.isfinite(each)) for each in gradients):
            return  # its vectors or values have no derivative there
        for paths in self._together(trial):
            ways = {p: rng.standard_normal(np.shape(at(trial.values, p))) for p in paths}
            parts = [found[path] * way for path, way in ways.items()]
            exact = sum(float(np.sum(each)) for each in parts)
            size = sum(float(np.sum(np.abs(each))) for each in parts) + 1e-3
            if (up := self._at(trial, ways, side)) is None:
                continue
            right = slope_of(up, own, dys, side)
            size += abs(right)
            if abs(exact - right) <= self.beside.tolerances.off * size:
                continue  # whatever the other side has
            down, closer = (self._at(trial, ways, h) for h in (-side, side / 4))
            if down is None or closer is None:
                continue
            left, again = slope_of(own, down, dys, side), slope_of(closer, own, dys, side / 4)
            size += abs(left)
            rounding = np.finfo(float).eps / side * weight(own, dys)
            if rounding > self.beside.tolerances.off * size:
                continue  # such as results of 1e30, of which differences have no digit
            spread = max(abs(right - left), abs(right - again))
            if not spread <= self.beside.tolerances.smooth * (abs(right) + abs(left) + 1e-3):
                continue
            if not abs(exact - right) <= self.beside.tolerances.off * size:
                if not self._is_linear(trial, ways, own, dys):
                    continue
                if not np.isfinite(exact) and self._is_at_an_end(trial, ways, own, dys):
                    continue
                names = " and ".join("d" + "_".join(map(str, path)) for path in paths)
                raise MeetingError(
                    f"{names} differs from differences on both sides where {trial.said} "
                    f"({exact:.6g}, {right:.6g})",
                    is_number=bool(np.isfinite(exact)),
                )

    def _at(self, trial: Trial, ways: Mapping[Path, Any], step: float) -> list[Any] | None:
        """The forward's own results at a distance."""
        return self.beside.own(moved(trial.values, ways, step), trial.values)

    def _is_at_an_end(
        self, trial: Trial, ways: Mapping[Path, Any], own: list[Any], dys: list[Any]
    ) -> bool:
        """Return whether a gradient that is no number is so at the end of a domain alone.

        There the forward is defined, but not on all sides, or it jumps: a division by zero or
        log 0 cancels in its results, and not in their slopes, in no library. On the inside the
        gradient has to be that of differences.
        """
        side, x = self.beside.tolerances.side, at(trial.values, trial.path)
        way = np.random.default_rng(13).standard_normal(np.shape(x))
        near = self.beside.tolerances.smooth
        same = partial(np.allclose, rtol=near, atol=near)
        ends = [self._at(trial, {trial.path: step * way}, 1.0) for step in (side, -side)]
        if not any(end is None or not all(map(same, end, own)) for end in ends):
            return False
        inside = (
            moved(trial.values, {trial.path: np.abs(way)}, sign * _INSIDE) for sign in (1, -1)
        )
        return all(self._is_right(values, trial, ways, dys) for values in inside)

    def _is_right(
        self, values: dict[str, Any], trial: Trial, ways: Mapping[Path, Any], dys: list[Any]
    ) -> bool:
        """Return whether the gradient is that of differences; True where there are none."""
        there = Trial(values, f"{trial.said} but for {_INSIDE}")
        side = self.beside.tolerances.side
        ends = [self._at(there, ways, step) for step in (side, -side)]
        if ends[0] is None or ends[1] is None:
            return True
        wanted = slope_of(ends[0], ends[1], dys, 2 * side)
        _, cache, refused = self.beside.forward(there)
        if refused or not np.isfinite(wanted):
            return True
        gradients = self.beside.backward(dys, cache, there.said)
        found = dict(zip(self.beside.pair.wanted, gradients, strict=True))
        parts = [found[path] * way for path, way in ways.items()]
        size = sum(float(np.sum(np.abs(each))) for each in parts) + abs(wanted) + 1e-3
        exact = sum(float(np.sum(each)) for each in parts)
        return bool(abs(exact - wanted) <= self.beside.tolerances.off * size)

    def _is_linear(
        self, trial: Trial, ways: Mapping[Path, Any], own: list[Any], dys: list[Any]
    ) -> bool:
        """Return whether the slope along a sum of directions is the sum of their slopes.

        That of a median is not, though where all is equal both sides have the same along each.
        """
        rng, side = np.random.default_rng(12), self.beside.tolerances.side
        others = {path: rng.standard_normal(np.shape(way)) for path, way in ways.items()}
        both = {path: way + others[path] for path, way in ways.items()}
        ends = [self._at(trial, each, side) for each in (ways, others, both)]
        slopes = [np.nan if end is None else slope_of(end, own, dys, side) for end in ends]
        size = sum(map(abs, slopes)) + 1e-3
        return bool(abs(slopes[0] + slopes[1] - slopes[2]) <= self.beside.tolerances.smooth * size)

    def _together(self, trial: Trial) -> list[list[Path]]:
        """The arrays that are moved at once: each alone, but of many those that are as elsewhere
        all together, so that a proof takes no more runs for each array than there are.
        """
        if len(self.beside.pair.wanted) <= MOST_ARRAYS:
            return [[path] for path in self.beside.pair.wanted]
        return [[trial.path], [path for path in self.beside.pair.wanted if path != trial.path]]


def _shapes(results: Iterable[Any]) -> list[tuple[int, ...]]:
    return [np.shape(each) for each in results]
