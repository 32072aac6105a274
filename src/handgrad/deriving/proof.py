"""The proof of a pair: what is emitted is run beside the forward before anybody gets it.

It is run at two sets of sizes, at two values of every setting that is a number, in float64 and
float32, and at points where the pieces of a forward meet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.deriving.arguments import Path, Setting, at, flat
from handgrad.deriving.beside import Beside, Trial, cotangents, slope_of, weight
from handgrad.deriving.meetings import MOST_ARRAYS, Meetings
from handgrad.deriving.moving import (
    largest,
    mapped_arrays,
    moved,
    replaced,
    rounded,
    single,
)
from handgrad.deriving.refusals import UnprovedError
from handgrad.deriving.samples import called

#: Differences with two steps tell of one slope where they differ by no more than this part.
ALIKE: Final = 1e-3
#: At a label, such as where a count is 0, the forward jumps from both sides: by this many times
#: what a bend of its slope could be.
_JUMP: Final = 1e3
#: By how much one goes less or more far then, and the part of a slope that the others would hide.
_FARTHER: Final = (0.1, 10.0)
_HIDDEN: Final = 0.01


@dataclass
class Proof(Beside):
    """A pair with its functions for NumPy, and the proof of it."""

    def run(self) -> None:
        """Raises UnprovedError where something differs."""
        for trial in self.trials():
            try:
                self._gradients(trial)
            except UnprovedError as error:
                error.setting = trial.setting
                raise
        Meetings(self).run()
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
        own = self.own(trial.values)
        if own is None or not all(x.size and self._is_known(x) for x in own):
            return False
        # A matrix without an inverse at these sizes has one by rounding, which tells nothing.
        near = self.own(mapped_arrays(trial.values, rounded), trial.values)
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
        own = self.own(trial.values)
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
        found = dict(zip(self.pair.wanted, gradients, strict=True))
        if self.pair.traced.world.own_rules:
            self._as_own_rules(trial, found, dys)
        for path in self._unsure(trial, found, dys, own):
            self._along(trial, path, found[path], dys, own)

    def _as_own_rules(self, trial: Trial, gradients: Mapping[Path, Any], dys: list[Any]) -> None:
        """Gradients that a forward gives by itself have to be those that are derived."""
        traced = self.pair.traced
        arrays = [at(trial.values, path) for path in gradients]
        wanted = traced.forward.gradients(traced.arguments, trial.values, dys, arrays)
        for path, own in zip(gradients, wanted, strict=True):
            by = self.tolerances.near * (largest(own) + largest(gradients[path]))
            if not np.allclose(own, gradients[path], rtol=0, atol=by, equal_nan=True):
                rules = sorted(traced.world.own_rules.items())
                names = " and ".join(f"{name} is a {kind}" for name, kind in rules)
                raise UnprovedError(
                    f"{names} with a gradient of its own, which is not that of its forward; "
                    "write what it computes without it"
                )

    def _unsure(
        self, trial: Trial, gradients: Mapping[Path, Any], dys: list[Any], own: list[Any]
    ) -> list[Path]:
        """The arrays to be moved alone: of many those that the rest would hide.

        Many are moved at once first, each along a random direction. An error of any of them shows
        there, for a random direction is at a right angle to it with probability 0, and errors of
        two cancel as seldom. So that none is hidden by the size of the others, each goes as far as
        makes its part about as large as theirs; one whose part stays small is moved alone, and so
        are all where the sum is not that of differences.
        """
        xs = {path: np.asarray(at(trial.values, path), float) for path in gradients}
        if len(xs) <= MOST_ARRAYS or any(np.shape(gradients[p]) != x.shape for p, x in xs.items()):
            return list(gradients)
        rng = np.random.default_rng(16)
        ways = {p: rng.standard_normal(x.shape) * max(1.0, largest(x)) for p, x in xs.items()}
        parts = {path: float(np.sum(np.abs(gradients[path] * ways[path]))) for path in ways}
        usual = float(np.median(list(parts.values())))
        for path, part in parts.items():
            by = float(np.clip(usual / part, *_FARTHER)) if part else 1.0
            ways[path], parts[path] = ways[path] * by, part * by
        exact = sum(float(np.sum(gradients[path] * way)) for path, way in ways.items())
        size = sum(parts.values()) + weight(own, dys)
        for step in self.tolerances.steps[:2]:
            ends = [self.own(moved(trial.values, ways, s * step), trial.values) for s in (1, -1)]
            if ends[0] is None or ends[1] is None:
                continue
            slope = slope_of(ends[0], ends[1], dys, 2 * step)
            if abs(slope - exact) <= self.tolerances.near * size:
                return [path for path, part in parts.items() if part < _HIDDEN * usual]
        return list(gradients)

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
        size = float(np.sum(np.abs(gradient * way))) + weight(own, dys)
        slopes, is_alone = [], False
        for step in self.tolerances.steps:
            h = step * max(1.0, float(np.max(np.abs(x), initial=0.0)))
            ends = [
                self.own(replaced(trial.values, path, x + s * h * way), trial.values)
                for s in (1, -1)
            ]
            if ends[0] is None or ends[1] is None:
                continue
            slopes.append(slope_of(ends[0], ends[1], dys, 2 * h))
            bend = slope_of(ends[0], own, dys, h) - slope_of(own, ends[1], dys, h)
            is_alone = is_alone or abs(bend) > _JUMP * (abs(slopes[-1]) + size)
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
            is_told = any(abs(a - b) <= ALIKE * (abs(a) + abs(b)) for a, b in pairs)
            refusal.is_rough = is_alone or not is_told
            if refusal.is_rough and len(self.pair.wanted) > 1:
                refusal.array = name
            raise refusal
        if trial.is_first:
            raise UnprovedError(f"the forward has no differences in {name} on its example")

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
        own = self.own(low) or ()
        return any(
            kind == np.float64 and each.dtype == np.float32
            for kind, each in zip(kinds, own, strict=False)
        )


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


def _said(lengths: Mapping[str, int]) -> str:
    return ", ".join(f"{x} = {n}" for x, n in lengths.items()) or "it is run on its example"
