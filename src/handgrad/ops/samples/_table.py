"""The parts of a table of sample inputs."""

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

#: The reason for which rows with an axis of length 0 are not compared with PyTorch.
NOTHING_TO_SUM: Final = "results are empty or sums of nothing, and PyTorch refuses some of these"
NO_EMPTY_AXIS: Final = "PyTorch refuses an axis of length 0 here, or takes it as another"

NO_MEAN: Final = "PyTorch's mean over nothing is NaN; here it is 0"

#: Situations in which as a rule only values can be compared, not finite differences.
_EDGES: Final = ("masked rows", "extreme values")


class Seed(NamedTuple):
    """Stands for a generator among the options; every call of forward gets a new one from it."""

    number: int


@dataclass(frozen=True)
class SampleInput:
    """Inputs and settings of one op, and the checks that hold on them."""

    label: str
    situation: Situation
    #: In the order of forward's arguments: float64, integers for indices, booleans for masks.
    arrays: Mapping[str, np.ndarray]
    #: Settings by keyword.
    options: Mapping[str, Any]
    #: True if finite differences give the gradient: no kink, tie or infinity is near.
    smooth: bool


@dataclass(frozen=True)
class SampleRow:
    """One line of a table: a sample whose arrays are still to be drawn."""

    label: str
    situation: Situation
    makers: Mapping[str, Maker]
    options: Mapping[str, Any]
    smooth: bool
    #: Enough work for several threads and several tiles; too much for the slow checks.
    large: bool = False
    #: The reason for which PyTorch computes nothing here to compare with, if so.
    not_in_torch: str = ""
    #: The reason for which annotations of forward do not hold here, if so.
    not_annotated: str = ""

    def draw(self, rng: np.random.Generator) -> SampleInput:
        arrays = {name: make(rng) for name, make in self.makers.items()}
        return SampleInput(self.label, self.situation, arrays, dict(self.options), self.smooth)


def row(
    label: str,
    situation: Situation,
    makers: Mapping[str, Maker],
    /,
    *,
    smooth: bool | None = None,
    large: bool = False,
    not_in_torch: str = "",
    not_annotated: str = "",
    **options: Any,
) -> SampleRow:
    """A line of a table; unless it says so itself, it is smooth outside of masks and extremes."""
    if smooth is None:
        smooth = situation not in _EDGES
    return SampleRow(label, situation, makers, options, smooth, large, not_in_torch, not_annotated)


@dataclass(frozen=True)
class OpSamples:
    """All that an op says of itself beside its mathematics: the one table for checker and tests."""

    #: The inputs that have a gradient, in the order in which backward returns these.
    gradients: tuple[str, ...]
    #: Few values each, so that they can be shown; the usual sample first.
    rows: tuple[SampleRow, ...]
    #: For the tests alone: sizes around vectors and tiles, axes of length 0, large arrays.
    awkward: tuple[SampleRow, ...]
    #: Fixed whole numbers that fit on a blackboard.
    small: SampleRow
    #: In the shape of the small example's y; of several outputs, nested as they are.
    small_cotangent: Callable[[np.random.Generator], Any]
    random: Callable[[np.random.Generator], SampleRow]
    #: The same computation in PyTorch: (torch.nn.functional, tensors, options) -> y, nested as the
    #: op's own outputs.
    torch: Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]
    #: Inputs whose NaN and infinities may come out at other positions from the kernel than from the
    #: reference, as the docstring of forward leaves open.
    open_nonfinite: tuple[str, ...] = ()
    #: Inputs and settings that mask pairs, whose NaN and infinities may or may not come out.
    masked_by: tuple[str, ...] = ()
    #: True where an infinity can meet a factor that is 0 or the last digit of 1, such as 1 − y² of
    #: a saturated tanh or a softmax's share: NaN from one engine, infinity from the other.
    saturates: bool = False
