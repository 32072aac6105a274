"""The record of a primitive with attributes, and the operands on which it is checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from handgrad.program.node import PRIMITIVES, Node, Primitive
from handgrad.program.sizes import Size

Values = NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Values]
Spelling = str | Callable[[Any, Node], str | tuple[str, int]]
Shaped = tuple[tuple[Size, ...], str]
Gradients = tuple[Node | None, ...]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Values of a standard normal distribution."""
    return rng.standard_normal(shape)


def whole(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Indices that hold for every axis of a sample."""
    return rng.integers(0, 2, shape)


def mask(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """True and false, each at least once where there is room."""
    out = rng.random(shape) < 0.6
    out.flat[0] = True
    return out


def complex_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Complex numbers with normal parts."""
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def positive_definite(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Symmetric matrices with eigenvalues well above 0."""
    a = rng.standard_normal(shape)
    return np.asarray(a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1]))


def triangle(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Lower triangles with a diagonal well away from 0."""
    return np.asarray(np.tril(rng.standard_normal(shape)) + 2 * shape[-1] * np.eye(shape[-1]))


def invertible(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Square matrices far from singular."""
    return np.asarray(rng.standard_normal(shape) + 2 * shape[-1] * np.eye(shape[-1]))


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Matrices whose eigenvalues and singular values lie well apart."""
    steps = np.diag(3.0 * np.arange(1, shape[-1] + 1))
    return np.asarray(0.3 * rng.standard_normal(shape) + steps[-shape[-2] :])


@dataclass(frozen=True)
class Sample:
    """Operands of a record: the axes of each in letters and numbers, how each is drawn, attributes.

    Letters are those of `LETTERS` in the tests, which run every sample at two sets of lengths.
    """

    axes: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    draws: tuple[Draw, ...] = ()

    def draw(self, position: int) -> Draw:
        """How the operand at a position is drawn: normal where nothing else is said."""
        return self.draws[position] if position < len(self.draws) else normal


class RecordColumns(TypedDict, total=False):
    """What a record has beside its functions, as `Primitive` describes it."""

    text: Spelling
    torch: Spelling
    jax: Spelling
    rewrite: Callable[..., Any] | None
    samples: tuple[Sample, ...]
    analytic: bool
    parts: Callable[..., tuple[Shaped, ...]] | None


def record(
    name: str,
    evaluate: Callable[..., Any],
    shape: Callable[..., Shaped],
    vjp: Callable[..., Gradients] | None = None,
    **columns: Unpack[RecordColumns],
) -> None:
    """Enters a primitive into the table; NumPy calls it by its name where nothing else is said."""
    columns.setdefault("text", f"np.{name}")
    PRIMITIVES[name] = Primitive(name, evaluate, shape, vjp, **columns)


def no_gradient(*operands: Any, **_: Any) -> Gradients:
    """The vjp of functions with integer results: none for any operand."""
    return (None,) * (len(operands) - 2)
