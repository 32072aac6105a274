"""Steps between data as they come and the inputs of a model, the same in training and in use.

A step is a frozen dataclass of plain numbers and texts with a `name`, called on a batch. `@step`
enters it in `STEPS`, and so a file can name it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from handgrad.arrays import Array
from handgrad.data.encoding import TableEncoding
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, DataError, ShapeError
from handgrad.escaping import cut, quoted


class Preprocessor(Protocol):
    """One step: x (N, ...) to what the next step, or the model, takes."""

    name: ClassVar[str]

    def __call__(self, x: Array) -> Array: ...


_Class = TypeVar("_Class", bound=type)

#: Every step by its name in files.
STEPS: Final[dict[str, type[Any]]] = {}


def step(kind: _Class) -> _Class:
    """Enter a dataclass of settings in `STEPS` under its name."""
    STEPS[kind.name] = kind  # type: ignore[attr-defined]
    return kind


step(TableEncoding)


@step
@dataclass(frozen=True)
class Scale:
    """x / maximum for integers; floats are taken as divided already, and lie from 0 to 1.

    Raises ArgumentError for a maximum that is not above 0, DataError for floats outside 0 to 1.
    """

    name: ClassVar[str] = "scale"
    maximum: float

    def __post_init__(self) -> None:
        if not (are_numbers(self.maximum) and self.maximum > 0):
            raise ArgumentError(f"scale: maximum is {shown(self.maximum)}; allowed: above 0")

    def __call__(self, x: Array) -> Array:
        if x.dtype.kind in "iub":
            return np.divide(x, np.float32(self.maximum), dtype=np.float32)
        if x.size and not (x.min() >= 0 and x.max() <= 1):
            raise DataError(
                f"scale: values from {x.min():g} to {x.max():g} were given; expected 0 to 1, or "
                f"integers from 0 to {self.maximum:g}"
            )
        return x


@step
@dataclass(frozen=True)
class Standardization:
    """(x − mean)/std over the last axis: one number each, or one for each feature.

    `Standardize.of(x)` takes them from training data. Raises ArgumentError for other settings,
    ShapeError for an x of another number of features.
    """

    name: ClassVar[str] = "standardize"
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values or not are_numbers(*values):
                raise ArgumentError(
                    f"standardize: {name} is {shown(values)}; allowed: a tuple of numbers"
                )
        if len(self.mean) != len(self.std) or min(self.std) <= 0:
            raise ArgumentError(
                f"standardize: std is {shown(self.std)}; allowed: {len(self.mean)} numbers above 0"
            )

    @classmethod
    def of(cls, x: Array, *, every: bool = False) -> Standardization:
        """The statistics of x (N, ..., D): for each feature, or of `every` value together.

        A feature that is the same in all examples is left as it is but for its mean.
        """
        values = np.asarray(x, np.float64)
        axes = tuple(range(values.ndim if every else values.ndim - 1))
        mean, std = np.atleast_1d(values.mean(axis=axes)), np.atleast_1d(values.std(axis=axes))
        return cls(tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist()))

    def __call__(self, x: Array) -> Array:
        if len(self.mean) not in (1, x.shape[-1]):
            raise ShapeError(
                f"standardize: x has shape {tuple(x.shape)}; allowed: (..., {len(self.mean)})"
            )
        return ((x - np.array(self.mean)) / np.array(self.std)).astype(np.float32)

    def undo(self, x: Array) -> Array:
        """The x that the step made this of, in float64."""
        return x * np.array(self.std) + np.array(self.mean)


@dataclass(frozen=True)
class Preprocessing:
    """Steps in their order; calling it applies all of them."""

    steps: tuple[Preprocessor, ...] = ()

    def __call__(self, x: Array) -> Array:
        for each in self.steps:
            x = each(x)
        return x

    def describe(self) -> list[dict[str, Any]]:
        """The steps as plain values for JSON, which `parse` takes back."""
        return [{"step": each.name, **asdict(each)} for each in self.steps]  # type: ignore[call-overload]

    @classmethod
    def parse(cls, described: Any) -> Preprocessing:
        """The steps of a file. Raises DataError for one that is unknown or has other settings."""
        if not isinstance(described, list):
            raise DataError(f"preprocessing is {quoted(described)}; expected a list of steps")
        return cls(tuple(_parse(each) for each in described))


def _parse(described: Any) -> Preprocessor:
    name = described.get("step") if isinstance(described, Mapping) else None
    kind = STEPS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DataError(
            f"preprocessing has {quoted(described)}; expected a step of {', '.join(STEPS)}"
        )
    settings = {key: _tuples(value) for key, value in described.items() if key != "step"}
    if set(settings) != {each.name for each in fields(kind)}:
        raise DataError(
            f"preprocessing: {name} has the settings {quoted(', '.join(settings))}; expected "
            f"{', '.join(each.name for each in fields(kind))}"
        )
    try:
        made: Preprocessor = kind(**settings)
    except ArgumentError as error:
        raise DataError(f"preprocessing: {cut(str(error), 300)}") from None
    return made


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def are_numbers(*values: Any) -> bool:
    """Return whether all of these are finite numbers."""
    return all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        for value in values
    )
