"""The sample inputs of every op as test cases: one list drives all tests of ops, and golden values.

A case is one row of the table of its op. Its arrays come from a generator seeded by its name, so
that a new row changes no other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Final
from zlib import crc32

import numpy as np
import pytest

from handgrad.ops import OPS
from handgrad.ops.samples import OpSamples, SampleRow, Seed, draw, op_samples
from tests.rows import rows

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    op: str
    row: SampleRow

    @property
    def label(self) -> str:
        return self.row.label

    @property
    def id(self) -> str:
        return f"{self.op}-{self.label.replace(' ', '-')}"

    def __str__(self) -> str:
        return self.id

    @property
    def options(self) -> Mapping[str, Any]:
        return self.row.options

    @property
    def module(self) -> ModuleType:
        return import_module(f"handgrad.ops.{self.op}")

    @property
    def samples(self) -> OpSamples:
        return op_samples(self.op)

    @property
    def gradient_names(self) -> tuple[str, ...]:
        return self.samples.gradients

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The inputs with a gradient that this case has."""
        return tuple(name for name in self.gradient_names if name in self.row.makers)

    def arrays(self, dtype: Any = np.float64) -> Arrays:
        made = draw(self.op, self.row, self._generator("arrays")).arrays
        return {
            name: array.astype(dtype) if array.dtype.kind == "f" else array
            for name, array in made.items()
        }

    def random_like(self, array: Any, purpose: str, dtype: Any = np.float64) -> Any:
        """A cotangent or a direction: normal values in the shape of `array`, never ones.

        For outputs in nested tuples, as many cotangents, nested likewise.
        """
        rng = self._generator(purpose)
        return mapped(
            lambda each: np.asarray(rng.standard_normal(tuple(each.shape)), dtype=dtype), array
        )

    def arguments(self, arrays: Mapping[str, Any]) -> inspect.BoundArguments:
        """Arrays and options bound as forward takes them, positional ones by position."""
        options = {
            name: np.random.default_rng(value.number) if isinstance(value, Seed) else value
            for name, value in self.options.items()
        }
        return inspect.signature(self.module.forward).bind(**arrays, **options)

    def forward(self, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
        arguments = self.arguments(arrays)
        return self.module.forward(*arguments.args, **arguments.kwargs)

    def backward(self, dy: Any, cache: Any, **keywords: Any) -> dict[str, Any]:
        """Gradients by the name of their input; None for an input that this case has not."""
        gradients = self.module.backward(dy, cache, **keywords)
        several = gradients if len(self.gradient_names) > 1 else (gradients,)
        return dict(zip(self.gradient_names, several, strict=True))

    def _generator(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng(crc32(f"{self.id}/{purpose}".encode()))


def leaves(nested: Any) -> Iterator[Any]:
    """The arrays in nested tuples, such as the outputs of an op or its cache."""
    if isinstance(nested, tuple):
        for part in nested:
            yield from leaves(part)
    elif hasattr(nested, "shape"):
        yield nested


def mapped(change: Callable[[Any], Any], nested: Any) -> Any:
    """The same nesting with every array changed."""
    if isinstance(nested, tuple):
        return tuple(mapped(change, part) for part in nested)
    return change(nested)


def named_outputs(y: Any) -> dict[str, Any]:
    """The outputs by a name for messages: `y` where there is one, else `y[0]`, `y[1]`, ..."""
    several = list(leaves(y))
    return {"y": y} if not isinstance(y, tuple) else {f"y[{i}]": v for i, v in enumerate(several)}


def each(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Run a test for every case, which it gets as `case`; those of an op are rows of one item."""
    return rows("case", cases, by=lambda case: case.op)


CASES: Final = tuple(
    Case(op, row) for op in OPS for row in (*op_samples(op).rows, *op_samples(op).awkward)
)
SMALL_CASES: Final = tuple(case for case in CASES if not case.row.large)
#: Cases whose rounding errors one tolerance bounds. Those of extreme values have a bound of their
#: own each, by which `handgrad.checking` judges them.
ORDINARY_CASES: Final = tuple(case for case in CASES if case.row.situation != "extreme values")
#: Small ones of these in which every value counts.
UNMASKED_CASES: Final = tuple(
    case
    for case in ORDINARY_CASES
    if not case.row.large and not {*case.samples.masked_by} & {*case.row.makers, *case.options}
)

#: The types of floats that kernels compute in.
each_float = rows("dtype", [np.float32, np.float64])
