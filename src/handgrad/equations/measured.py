"""The finite-difference result that notes show, taken when they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from handgrad.differences.directional import CENTRAL, KINK, NOT_FINITE, directional
from handgrad.differences.layers import of_layer
from handgrad.equations.subject import Subject
from handgrad.errors import ArgumentError
from handgrad.layers import Layer

#: Central differences beside the inputs, which are moved by this fraction of their size.
BESIDE: Final = "central differences, beside a kink"
_ASIDE: Final = 2.0**-5


class Measured(NamedTuple):
    """How far one gradient is from a difference, by how far it may be, and how it was taken."""

    gradient: str
    error: float
    bound: float
    method: str

    @property
    def verdict(self) -> Literal["right", "wrong", "undecided"]:
        """A kink has no derivative, and what is not finite no difference; both decide nothing."""
        if self.error <= self.bound:
            return "right"
        return "undecided" if self.method in (KINK, NOT_FINITE) else "wrong"


Measure = Callable[[Subject], Sequence[Measured]]


def measure(subject: Subject) -> list[Measured]:
    """Every gradient along a random direction, with a random cotangent, in float64.

    One that meets a kink, where the bound is wide, is measured once more beside the inputs.

    Raises ArgumentError where a gradient has not the shape of what it belongs to.
    """
    rng = np.random.default_rng(0)
    arrays = {name: _as_float(value) for name, value in subject.arrays.items()}
    found = list(_measured(subject, arrays, rng))
    if all(each.method != KINK for each in found):
        return found
    moved = {name: _moved(array, rng) for name, array in arrays.items()}
    beside = {
        each.gradient: each._replace(method=BESIDE)
        for each in _measured(subject, moved, rng)
        if each.method == CENTRAL
    }
    return [beside.get(e.gradient, e) if e.method == KINK else e for e in found]


def measure_layer(layer: Layer, inputs: Sequence[Any]) -> list[Measured]:
    """Every gradient of a layer or model, as `measure` does it; parameters go by their names."""
    names = [*signature(layer.forward).parameters][: len(inputs)]
    functions = of_layer(layer, names, inputs, {})
    arrays = {**dict(zip(functions.inputs, inputs, strict=False)), **functions.parameters}

    def forward(**given: Any) -> Any:
        return functions.forward(*(given[name] for name in functions.inputs))

    return measure(
        Subject(functions.name, forward, functions.backward, arrays, gradients=functions.gradients)
    )


def _measured(
    subject: Subject, arrays: Mapping[str, Any], rng: np.random.Generator
) -> Iterator[Measured]:
    y, cache = subject.forward(**arrays, **subject.fresh_options())
    cotangent = _random_like(y, rng)
    gradients = subject.backward(cotangent, cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)

    def contracted(point: dict[str, Any]) -> float:
        found, _ = subject.forward(**{**arrays, **point}, **subject.fresh_options())
        return _contracted(found, cotangent)

    for name, gradient in zip(subject.gradients or (), gradients, strict=False):
        if gradient is None or name not in arrays or arrays[name].dtype.kind != "f":
            continue
        if np.shape(gradient) != np.shape(arrays[name]):
            raise ArgumentError(
                f"notes: the gradient of {name} has shape {np.shape(gradient)}; allowed: "
                f"{np.shape(arrays[name])}, the shape of {name}"
            )
        direction = rng.standard_normal(np.shape(arrays[name]))
        found = directional(contracted, arrays, {name: direction})
        error = abs(found.value - float(np.sum(np.asarray(gradient) * direction)))
        yield Measured(name, error, found.bound, found.method)


def _as_float(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _moved(array: Any, rng: np.random.Generator) -> Any:
    if array.dtype.kind != "f":
        return array
    finite = array[np.isfinite(array)]
    size = np.max(np.abs(finite), initial=0.0) or 1.0
    return array + _ASIDE * size * rng.standard_normal(array.shape)


def _random_like(y: Any, rng: np.random.Generator) -> Any:
    if isinstance(y, tuple | list):
        return tuple(_random_like(part, rng) for part in y)
    return np.asarray(rng.standard_normal(np.shape(y)))


def _contracted(y: Any, cotangent: Any) -> float:
    if isinstance(y, tuple | list):
        return sum(_contracted(one, other) for one, other in zip(y, cotangent, strict=True))
    return float(np.sum(np.asarray(y) * cotangent))
