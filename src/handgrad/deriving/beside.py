"""A pair beside the user's forward: both run on the same arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.deriving.arguments import Path
from handgrad.deriving.moving import copied
from handgrad.deriving.pair import DerivedPair
from handgrad.deriving.refusals import UnprovedError
from handgrad.deriving.samples import Sampler, called


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
#: Primitives whose derivatives go by the gaps between the values that they find.
_DECOMPOSITIONS: Final = frozenset({"eigh", "eig", "svd"})


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
class Beside:
    """A pair with its functions for NumPy."""

    pair: DerivedPair
    sampler: Sampler
    functions: Mapping[str, Any]
    #: The forward's results have infinities on its example, as those of a mask do.
    has_infinite: bool = False

    @cached_property
    def is_single(self) -> bool:
        """Return whether the forward makes arrays single: its differences are rounded to that."""
        return any(node.op == "single" for node in self.pair.traced.program.everywhere())

    @cached_property
    def decomposes(self) -> bool:
        """Return whether the forward takes a matrix apart, by values that may be equal."""
        return any(node.op in _DECOMPOSITIONS for node in self.pair.traced.program.everywhere())

    @cached_property
    def detaches(self) -> bool:
        """Return whether the forward takes some of its values as constant."""
        return any(node.op == "stop" for node in self.pair.traced.program.everywhere())

    @property
    def tolerances(self) -> Tolerances:
        return _SINGLE if self.is_single else _DOUBLE

    def own(
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


def cotangents(rng: np.random.Generator, results: list[Any]) -> list[np.ndarray[Any, Any]]:
    """Random ones; 0 where a result is infinite, such as a mask's, which has no differences."""
    drawn = [rng.standard_normal(np.shape(each)) for each in results]
    return [np.where(np.isfinite(y), dy, 0.0) for y, dy in zip(results, drawn, strict=True)]


def weight(own: list[Any], dys: list[Any]) -> float:
    """The size of the terms of a sum of results times cotangents."""
    pairs = zip(own, dys, strict=True)
    return sum(float(np.sum(np.abs(a * dy), where=dy != 0)) for a, dy in pairs)


@np.errstate(invalid="ignore")
def slope_of(up: list[Any], down: list[Any], dys: list[Any], width: float) -> float:
    """The difference quotient against a cotangent; NaN where the results have other shapes."""
    if any(np.shape(a) != np.shape(b) for a, b in zip(up, down, strict=True)):
        return np.nan
    pairs = zip(up, down, dys, strict=True)
    return sum(float(np.sum((a - b) * dy, where=dy != 0)) for a, b, dy in pairs) / width
