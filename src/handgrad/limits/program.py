"""A model's NETSOR program: the vectors that it computes, from its layers."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.initializers import Initializer
from handgrad.layers.base import Layer
from handgrad.limits.inputs import InputPosition, Side
from handgrad.limits.moments import Moments
from handgrad.limits.variables import (
    ONE,
    Bias,
    Coefficient,
    Concat,
    InputVector,
    LinComb,
    MatMul,
    Nonlin,
    Variable,
    Weight,
    is_gaussian,
    parts_of,
)
from handgrad.limits.variances import Variances


class Raw(NamedTuple):
    """The input of a model, before a layer has said where its features are; without the batch.

    `name` is what its vectors are called.
    """

    shape: tuple[int, ...]
    is_tokens: bool
    name: str = "x"


class Signal(NamedTuple):
    """A vector for every position of an example: an array of variables, () of a single vector.

    `features` says on which side of the positions a layer finds the entries: "first" or "last".
    """

    variables: np.ndarray
    features: str = "last"

    @property
    def positions(self) -> list[tuple[int, ...]]:
        return list(np.ndindex(self.variables.shape))

    def each(self, change: Callable[[tuple[int, ...], Variable], Variable]) -> Signal:
        """The signal with every vector replaced, from its position and itself."""
        shape = self.variables.shape
        return signal(shape, lambda at: change(at, self.variables[at]), self.features)


def signal(
    shape: tuple[int, ...],
    variable_at: Callable[[tuple[int, ...]], Variable],
    features: str = "last",
) -> Signal:
    """A signal from a function of the position."""
    variables = np.empty(shape, dtype=object)
    for position in np.ndindex(shape):
        variables[position] = variable_at(position)
    return Signal(variables, features)


class MomentFactor:
    """A factor for every example that follows from moments of the program itself.

    In NETSOR+ such a number, a mean over the entries of a vector, is no random variable any more:
    it converges to an expectation. `role` says what it does, where it is printed.
    """

    def __init__(self, compute: Callable[[Moments], Array], role: str) -> None:
        self.role = role
        self._compute = compute
        self._known: weakref.WeakKeyDictionary[Moments, Array] = weakref.WeakKeyDictionary()

    def __call__(self, alone: Moments) -> Array:
        """The factors, (N,) or what broadcasts to it, of one side's moments with itself."""
        if alone not in self._known:
            self._known[alone] = self._compute(alone)
        return self._known[alone]


class Build:
    """The state that the rules of the layers share: names, weights and the sides compared."""

    def __init__(self, variances: Variances, sides: tuple[Side, ...]) -> None:
        self.variances = variances
        self.is_ragged = any(side.is_ragged for side in sides)
        #: The batches, one per side, among all examples: for what depends on a batch as a whole.
        ends = np.cumsum([0, *(side.count for side in sides)])
        self.batches = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self._scope: list[str] = []
        self._weights: dict[tuple[Layer, str], Weight] = {}
        self._parts: dict[tuple[Weight, int], Weight] = {}
        #: The shares of the parts that a matrix is applied to.
        self._split: dict[Weight, tuple[float, ...]] = {}
        self.sides = sides

    @contextmanager
    def child(self, name: str) -> Iterator[None]:
        """Parameters inside belong to the child of this name."""
        self._scope.append(name)
        yield
        self._scope.pop()

    def name(self, of: str) -> str:
        return ".".join([*self._scope, of])

    def weight(
        self,
        layer: Layer,
        name: str,
        initializer: Initializer,
        shape: tuple[int, ...],
        columns: int,
    ) -> Weight:
        """A matrix that the layer draws so; `columns` is the size of what it is applied to.

        A layer that stands in a model more than once has one matrix.
        """
        return self._drawn("weight", layer, name, initializer, shape, columns)

    def bias(
        self,
        layer: Layer,
        name: str = "bias",
        initializer: Initializer = initializers.zeros,
        shape: tuple[int, ...] = (1,),
    ) -> Weight:
        """A drawn vector, of zeros where the layer starts from them and nothing else is given."""
        return self._drawn("bias", layer, name, initializer, shape, 1)

    def _drawn(
        self,
        kind: str,
        layer: Layer,
        name: str,
        initializer: Initializer,
        shape: tuple[int, ...],
        columns: int,
    ) -> Weight:
        if (layer, name) not in self._weights:
            drawn = self.variances.of(kind, self.name(name), initializer, shape, columns)
            self._weights[layer, name] = drawn
        return self._weights[layer, name]

    def read(self, x: Raw | Signal, features: str) -> Signal:
        """The vectors of the input, whose features are "first" or "last"; a signal as it is.

        Raises ArgumentError where a signal has them on the other side: the layer would act along
        what goes to infinity as if it were positions.
        """
        if isinstance(x, Signal):
            if x.variables.ndim and x.features != features:
                raise ArgumentError(
                    f"limits: layer {'.'.join(self._scope)} takes features on the {features} axis "
                    f"and gets them on the {x.features}; allowed: the same, or Flatten between"
                )
            return x
        self.check_floats(x)
        positions = x.shape[1:] if features == "first" else x.shape[:-1]

        def at(position: tuple[int, ...]) -> Variable:
            return InputVector(x.name, InputPosition(features, position), index=position)  # type: ignore[arg-type]

        return signal(positions, at, features)

    def check_floats(self, x: Raw) -> None:
        """Raise ArgumentError where the input is tokens."""
        if x.is_tokens:
            raise ArgumentError(
                "limits: x is integers, which are tokens; allowed: floats, or an Embedding first"
            )

    def product(self, weight: Weight, operand: Variable) -> Variable:
        """W h; of parts one after another the sum over them, each with columns of its own."""
        parts = parts_of(operand)
        shares = tuple(share for share, _ in parts)
        if self._split.setdefault(weight, shares) != shares:
            raise ArgumentError(
                f"limits: {weight.name} is applied to vectors that are put together in different "
                "ways; allowed: in the same way, wherever its layer stands"
            )
        if len(parts) == 1:
            return MatMul(weight.name, weight, operand, index=operand.index)
        terms = (
            MatMul(weight.name, self.columns(weight, i, share), part, index=operand.index)
            for i, (share, part) in enumerate(parts)
        )
        return total(*terms)

    def columns(self, weight: Weight, number: int, share: float) -> Weight:
        """This share of the columns of a matrix, which are independent of the others."""
        part = Weight(weight.name, weight.variance * share, number)
        return self._parts.setdefault((weight, number), part)

    def rows(self, weight: Weight, number: int) -> Weight:
        """Some of the rows of a matrix, or of a vector."""
        part = Weight(f"{weight.name}[{number}]", weight.variance)
        return self._parts.setdefault((weight, number), part)


def total(*variables: Variable, name: str = "") -> Variable:
    """A sum, part by part; of one vector itself."""
    if len(variables) == 1:
        return variables[0]
    return mixed(*((1.0, each) for each in variables), name=name)


def mixed(
    *terms: tuple[Coefficient, Variable], name: str = "", index: tuple[int, ...] | None = None
) -> Variable:
    """A sum with factors, part by part where the vectors consist of parts.

    Sums without a `name` stand as their terms in the sums that they are part of.
    """
    several = [parts_of(each) for _, each in terms if each is not ONE]
    if index is None:
        index = next((each.index for _, each in terms if each.index), ())
    most = max(map(len, several), default=1)
    if most == 1:
        return LinComb(name, _flat(terms), index=index)
    if {len(each) for each in several} != {most}:
        raise ArgumentError("limits: a sum of vectors that are put together in different ways")
    parts = []
    for i in range(most):
        inner = tuple(
            (factor, each if each is ONE else parts_of(each)[i][1]) for factor, each in terms
        )
        part = LinComb(name and f"{name}[{i}]", _flat(inner), index=index)
        parts.append((several[0][i][0], part))
    return Concat("", tuple(parts), index=index)


def _flat(
    terms: tuple[tuple[Coefficient, Variable], ...],
) -> tuple[tuple[Coefficient, Variable], ...]:
    """Sums without a name in the place of sums of sums."""
    found: list[tuple[Coefficient, Variable]] = []
    for factor, each in terms:
        if isinstance(each, LinComb) and factor == 1.0 and not each.name:
            found += each.terms
        else:
            found.append((factor, each))
    return tuple(found)


def activated(activation: str, variable: Variable, **options: float | str) -> Variable:
    """f of every part; the vector itself for the identity."""
    if activation == "identity":
        return variable
    parts = tuple(
        (share, Nonlin(activation, activation, part, options, index=variable.index))
        for share, part in parts_of(variable)
    )
    return parts[0][1] if len(parts) == 1 else Concat("", parts, index=variable.index)


def normalized(variable: Variable, eps: float, name: str, *, centred: bool) -> Variable:
    """(h − E h)/√(E h² − (E h)² + ε), or without the mean: moments of the vector itself."""
    parts = parts_of(variable)
    has_mean = centred and not all(is_gaussian(part) for _, part in parts)

    def mean(alone: Moments) -> Any:
        return sum(share * alone.second(ONE, part) for share, part in parts)

    def scale(alone: Moments) -> Array:
        power = sum(share * alone.second(part, part) for share, part in parts)
        return np.asarray(1.0 / np.sqrt(power - (mean(alone) ** 2 if has_mean else 0.0) + eps))

    factor = MomentFactor(scale, "normalized" if centred else "scaled")
    terms: list[tuple[Coefficient, Variable]] = [(factor, variable)]
    if has_mean:
        terms.append((MomentFactor(lambda alone: -factor(alone) * mean(alone), "mean"), ONE))
    return mixed(*terms, name=name)


def bias_of(weight: Weight) -> Variable:
    return Bias(weight.name, weight)
