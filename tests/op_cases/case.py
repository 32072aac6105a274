"""A case of an op: its arrays, its settings, and what it is exempt from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import pytest

from tests.op_cases.equivalents import EQUIVALENTS
from tests.op_cases.makers import Maker

Arrays = dict[str, np.ndarray]


class Seed(NamedTuple):
    """Stands for a generator among a case's options; every call gets a new one from this seed."""

    number: int


@dataclass(frozen=True)
class Case:
    op: str
    label: str
    makers: Mapping[str, Maker]
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Enough work for several threads and several tiles; too much for the slow checks.
    large: bool = False
    no_differences: str = ""
    not_in_torch: str = ""
    not_annotated: str = ""

    @property
    def id(self) -> str:
        return f"{self.op}-{self.label.replace(' ', '-')}"

    @property
    def module(self) -> ModuleType:
        return import_module(f"handgrad.ops.{self.op}")

    @property
    def gradient_names(self) -> tuple[str, ...]:
        return EQUIVALENTS[self.op].gradients

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The inputs with a gradient that this case has."""
        return tuple(name for name in self.gradient_names if name in self.makers)

    def arrays(self, dtype: Any = np.float64) -> Arrays:
        rng = self._generator("arrays")
        made = {name: make(rng) for name, make in self.makers.items()}
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
    """Run a test once for every case, which it gets as `case`."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


#: Why cases with an empty axis are not in the golden file.
NOTHING_TO_SUM: Final = "results are empty or sums of nothing, and PyTorch refuses some of these"

#: All cases, as their files list them.
LISTED: Final[list[Case]] = []
_EXEMPTIONS: Final = ("large", "no_differences", "not_in_torch", "not_annotated")


def add(op: str, label: str, makers: Mapping[str, Maker], /, **rest: Any) -> None:
    """List a case; what is not an exemption is an option of the op."""
    exempt = {key: rest.pop(key) for key in _EXEMPTIONS if key in rest}
    LISTED.append(Case(op, label, makers, rest, **exempt))
