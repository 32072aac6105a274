"""A target whose passes were watched once: the user's functions in them, and derived gradients."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from types import CodeType
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.kept import StateBefore, TooMuchError
from handgrad.checking.alignment.pieces import Call, CodePiece, observed, pieces
from handgrad.checking.alignment.pool import SweptForward, derivation
from handgrad.checking.trial import (
    TrialFault,
    TrialRun,
    backward,
    contraction,
    noise,
    unit_of,
)
from handgrad.checking.trial import forward as run_forward
from handgrad.differences.directional import CENTRAL, Derivative, directional
from handgrad.forward_backward import ForwardBackward
from handgrad.program.source import nested

#: Random directions along which a derived gradient has to be what differences say.
_DIRECTIONS: Final = 3
#: Parts of what is computed along a direction that differences have to know it to.
_KNOWN: Final = 1e-4


class WatchedTarget:
    """A target's functions as one pass showed them.

    Raises TooMuchError where the target holds more than can be put back.
    """

    def __init__(self, functions: ForwardBackward, done: TrialRun) -> None:
        self.functions, self._done = functions, done
        self.kept = StateBefore([functions])
        self._ran: set[CodeType] = set()
        #: By the runs' numbers in memory, which the runs themselves keep from standing for others.
        self._swept: dict[int, tuple[TrialRun, SweptForward | None]] = {}

    @cached_property
    def pieces(self) -> list[CodePiece]:
        """The user's functions that run in a pass; none where it leaves arrays and Python."""
        return self._seen[0]

    @cached_property
    def of_forward(self) -> list[CodePiece]:
        """Those of the functions that run in forward, whether or not backward calls them too."""
        return [
            piece for piece in self.pieces if any(each in self._ran for each in nested(piece.code))
        ]

    @cached_property
    def _seen(self) -> tuple[list[CodePiece], Call | None]:
        """The functions, and the first call of forward's."""
        done = self._done
        with self.kept.put_back():
            before = observed(lambda: run_forward(self.functions, done.arrays))
            _, cache = before.result
            dy = copy.deepcopy(done.dy)
            after = observed(partial(_until_it_raises, self.functions, dy, cache))
            self.kept.note_draws()
        if before.leads_out or after.leads_out:
            return [], None
        self._ran = {*before.calls}
        return pieces(before.calls, after.calls), _first(before.calls)

    @property
    def _has_no_dy(self) -> bool:
        """Return whether gradients are made beside the loss: what comes back is times dy."""
        return all(each.in_forward for each in self.pieces) and np.size(self._done.dy) == 1

    def swept(self, done: TrialRun) -> SweptForward | None:
        """The derivation of forward at a run; None where it has none."""
        if id(done) not in self._swept:
            entry = self._seen[1]
            if done.arrays is not self._done.arrays:
                with self.kept.put_back():
                    entry = _first(observed(lambda: run_forward(self.functions, done.arrays)).calls)
            self._swept[id(done)] = done, self._derived(done, entry)
        return self._swept[id(done)][1]

    def _derived(self, done: TrialRun, entry: Call | None) -> SweptForward | None:
        own = [piece for piece in self.pieces if entry is not None and piece.code is entry.code]
        if not own or entry is None:
            return None
        dy = np.ones_like(done.dy) if self._has_no_dy else done.dy
        with self.kept.put_back():
            return derivation(own[0].called(entry), entry.given, dy)

    def is_vouched(self, done: TrialRun, right: Mapping[str, Any]) -> bool:
        """Return whether gradients that are right are among the values of the derivation."""
        swept, times = self.swept(done), self._times(done)
        return swept is not None and swept.is_vouched(
            {name: each / times for name, each in right.items()}
        )

    def _times(self, done: TrialRun) -> float:
        return float(done.dy) if self._has_no_dy else 1.0

    def gradient(
        self, done: TrialRun, name: str, rng: np.random.Generator
    ) -> tuple[np.ndarray, float] | None:
        """The derived gradient of an input, and an upper bound of what differences leave open.

        None where there is none that differences along random directions bear out.
        """
        swept = self.swept(done)
        found = [] if swept is None else swept.gradients_of(done.arrays[name])
        directions = [rng.standard_normal(np.shape(done.arrays[name])) for _ in range(_DIRECTIONS)]
        value = contraction(self.functions, done)
        slopes: list[Derivative] = []
        for v in directions if found else ():
            point, way = dict(done.arrays), {name: np.asarray(v)}
            slopes.append(directional(value, point, way, noise=noise(self.functions, done)))
        for each in found:
            gradient = self._times(done) * each
            pairs = zip(directions, slopes, strict=True)
            left = [self._left(gradient * v, slope) for v, slope in pairs]
            if None not in left:
                return gradient, max(bound for bound in left if bound is not None)
        return None

    def _left(self, terms: np.ndarray, slope: Derivative) -> float | None:
        """The part of a gradient that a derivative along a line leaves open; None for another."""
        size = float(np.sqrt(np.sum(terms**2)))
        error = abs(float(np.sum(terms)) - slope.value)
        allowed = slope.bound + 4.0 * unit_of(self.functions) * size
        is_known = slope.method == CENTRAL and slope.bound <= _KNOWN * size
        return error + slope.bound if is_known and error <= allowed else None


def watched(functions: ForwardBackward, done: TrialRun) -> WatchedTarget | None:
    """The target as it is watched, None where it cannot be put back after a run."""
    try:
        return WatchedTarget(functions, done)
    except TooMuchError:
        return None


def _first(calls: dict[Any, Call]) -> Call | None:
    return next(iter(calls.values()), None)


def _until_it_raises(functions: ForwardBackward, dy: Any, cache: Any) -> None:
    with suppress(TrialFault):
        backward(functions, dy, cache)
