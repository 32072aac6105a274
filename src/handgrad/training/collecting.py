"""Data as they are given to `Trainer.fit`, as parts to learn from and to judge by.

Examples and targets are checked one by one here, before a model is in sight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import split_indices, take
from handgrad.data.given import as_examples, as_tags, as_targets, check_finite, encoded
from handgrad.data.ragged import Sequences
from handgrad.data.sources import Source
from handgrad.errors import ArgumentError, DataError, ShapeError

#: Where the targets of a tagger end, in batches of sequences of different lengths.
NO_TAG: Final = -100


@dataclass(frozen=True)
class DataPart:
    """Examples and targets; `what` names them in errors, origins say where each is from."""

    what: str
    x: Any
    y: Any
    origins: Array | None = None

    @property
    def of(self) -> str:
        """The name of the targets in errors."""
        return "y" if self.what == "x" else f"the y of {self.what}"

    def at(self, index: Array) -> DataPart:
        origins = None if self.origins is None else self.origins[index]
        return replace(self, x=take(self.x, index), y=take(self.y, index), origins=origins)


@dataclass
class GivenData:
    """Parts as arrays, by name; those that are sources of batches stand apart.

    columns: of a table, and encoding: the plan by which they were read, if there is one.
    """

    parts: dict[str, DataPart] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    classes: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()
    encoding: Any = None


def collected(x: Any, y: Any, validation: Any, test: Any) -> GivenData:
    """The parts in the arguments of fit. Raises an error for arguments that are none."""
    given = GivenData()
    examples: Any
    if y is not None:
        examples = as_examples(x)
        targets, given.classes = _targets(examples, y, None)
        given.parts["train"] = DataPart("x", examples, targets)
        given.columns = tuple(str(name) for name in getattr(x, "columns", ()))
    elif hasattr(x, "gather"):
        given.sources["train"] = x
    elif hasattr(x, "x_train"):
        given.classes = getattr(x, "classes", None) or None
        given.columns = getattr(x, "columns", ())
        given.encoding = getattr(x, "encoding", None)
        origins: Mapping[str, Array] = getattr(x, "origins", {})
        for name in ("train", "validation", "test"):
            examples, targets = getattr(x, f"x_{name}", None), getattr(x, f"y_{name}", None)
            if examples is not None:
                given.parts[name] = DataPart(
                    f"x_{name}", examples, np.asarray(targets), origins.get(name)
                )
    else:
        raise ArgumentError(
            f"fit: x is a {type(x).__name__} and y is missing; allowed: fit(x, y, epochs=...) with "
            "arrays, or fit(data, epochs=...) with a data set or a source of batches"
        )
    for name, more in (("validation", validation), ("test", test)):
        if more is not None:
            _add(given, name, more)
    return given


def _add(given: GivenData, name: str, more: Any) -> None:
    """Add validation_data or test_data."""
    if hasattr(more, "gather"):
        given.sources[name] = more
        given.parts.pop(name, None)
        return
    if not isinstance(more, tuple | list) or len(more) != 2:
        raise ArgumentError(
            f"fit: {name}_data is a {type(more).__name__}; allowed: a pair (x, y) or a source of "
            "batches"
        )
    examples = as_examples(more[0], f"{name}_data")
    targets, names = _targets(examples, more[1], given.classes)
    if names is not None and given.classes is None:
        raise DataError(
            f"the y of {name}_data has names of classes; expected numbers, as in training"
        )
    given.parts[name] = DataPart(f"{name}_data", examples, targets)


def _targets(
    examples: Any, y: Any, known: tuple[str, ...] | None
) -> tuple[Any, tuple[str, ...] | None]:
    """Targets as numbers, those of sequences with tags as `Sequences`, and the names of classes."""
    several = isinstance(y, list | tuple) and any(np.ndim(each) > 0 for each in y)
    if isinstance(examples, Sequences) and (several or isinstance(y, Sequences)):
        return as_tags(y, known, NO_TAG)
    if known is not None:
        return encoded(y, known), known
    return as_targets(y)


def check_part(part: DataPart, columns: Sequence[str]) -> None:
    """Raise an error unless there are examples, as many targets, and all of them are finite."""
    if len(part.x) != len(part.y):
        raise ShapeError(
            f"{part.what} has {len(part.x)} examples and {part.of} {len(part.y)}; allowed: as many "
            "of each"
        )
    if len(part.x) == 0:
        raise DataError(f"{part.what} has no examples; expected one or more")
    check_finite(part.x, part.what, columns)
    check_finite(part.y, part.of)
    if isinstance(part.x, Sequences) and isinstance(part.y, Sequences):
        wrong = np.flatnonzero(part.x.lengths != part.y.lengths)
        if len(wrong):
            i = wrong[0]
            raise ShapeError(
                f"{part.of} has {part.y.lengths[i]} tags in row {i}; allowed: "
                f"{part.x.lengths[i]}, one for each step"
            )


def divide(given: GivenData, fraction: float, seed: int) -> None:
    """Take the validation part from the training part."""
    if not isinstance(fraction, float | int) or not 0 < fraction < 1:
        raise ArgumentError(f"fit: validation_split is {fraction!r}; allowed: between 0 and 1")
    if "train" not in given.parts or "validation" in (*given.parts, *given.sources):
        raise ArgumentError(
            "fit: validation_split is given with validation data, or with a source of batches; "
            "allowed: one of them, and arrays"
        )
    whole = given.parts["train"]
    kept, held = split_indices(whole.y, fraction, seed)
    if not len(kept) or not len(held):
        raise ArgumentError(
            f"fit: validation_split is {fraction} of {len(whole.x)} examples, which leaves a part "
            "empty; allowed: examples in both"
        )
    given.parts["train"], given.parts["validation"] = whole.at(kept), whole.at(held)
