"""What the tables of samples are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

Maker = Callable[[np.random.Generator], np.ndarray]

Situation = Literal[
    "usual",
    "one row",
    "prime sizes",
    "empty",
    "masked rows",
    "extreme values",
    "broadcast",
    "option",
]
SITUATIONS: Final[tuple[str, ...]] = get_args(Situation)

#: Where as a rule only values can be compared, not finite differences.
_EDGES: Final = ("masked rows", "extreme values")


class Seed(NamedTuple):
    """Stands for a generator among the options; every call of forward gets a new one from it."""

    number: int


@dataclass(frozen=True)
class Sample:
    """Inputs of one op, and what can be asked of it there."""

    label: str
    situation: Situation
    #: In the order of forward's arguments: float64, integers for indices, booleans for masks.
    arrays: Mapping[str, np.ndarray]
    #: Settings by keyword.
    options: Mapping[str, Any]
    #: Whether finite differences give the gradient: no kink, tie or infinity is near.
    smooth: bool


@dataclass(frozen=True)
class Row:
    """One line of a table: a sample whose arrays are still to be drawn."""

    label: str
    situation: Situation
    makers: Mapping[str, Maker]
    options: Mapping[str, Any]
    smooth: bool

    def draw(self, rng: np.random.Generator) -> Sample:
        arrays = {name: make(rng) for name, make in self.makers.items()}
        return Sample(self.label, self.situation, arrays, dict(self.options), self.smooth)


def row(
    label: str,
    situation: Situation,
    makers: Mapping[str, Maker],
    /,
    *,
    smooth: bool | None = None,
    **options: Any,
) -> Row:
    """A line of a table; unless it says so itself, it is smooth outside of masks and extremes."""
    if smooth is None:
        smooth = situation not in _EDGES
    return Row(label, situation, makers, options, smooth)


@dataclass(frozen=True)
class OpSamples:
    """All there is to draw for one op."""

    #: The inputs that have a gradient, in the order in which backward returns these.
    gradients: tuple[str, ...]
    rows: tuple[Row, ...]
    small: Row
    #: In the shape of the small example's y; of several outputs, nested as they are.
    small_cotangent: Callable[[np.random.Generator], Any]
    random: Callable[[np.random.Generator], Row]
