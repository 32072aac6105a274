"""The lines of a NETSOR program: vectors as wide as the network, and what makes one of others.

A network whose hidden sizes go to infinity computes, for each example, vectors of n values. At n =
∞ the values of one vector are independent draws of one random variable, so that all that is asked
of a network are expectations of products of such variables. Three kinds are told apart, as in the
paper: those that are drawn (A: biases, matrices), those that are Gaussian (G: a matrix times a
vector, and sums of these) and all others (H: functions of Gaussian ones).

A variable stands for one position (a time step, a pixel) of all examples.

Source: Yang, Tensor programs I: wide feedforward or recurrent neural networks of any architecture
are Gaussian processes (2019), sections 2 and 3, and its appendix on moments (NETSOR+).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from handgrad.arrays import Array

#: A factor for every example: one number, or a function of a side of the pair of inputs.
Coefficient: TypeAlias = float | Callable[..., Array]


@dataclass(frozen=True, eq=False)
class Weight:
    """A matrix, or a vector of biases, with independent Gaussian entries.

    `variance` is that of an entry of a vector, and of a matrix times the number of its columns.
    Some columns of a matrix have its name and a `number` among them.
    """

    name: str
    variance: float
    number: int | None = None


@dataclass(frozen=True, eq=False)
class Variable:
    """A vector of the program; `index` are the positions that it stands for, for its name."""

    name: str
    index: tuple[int, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, eq=False)
class InputVector(Variable):
    """A vector of the network's input, of a fixed size; `key` says where an example has it."""

    key: Any


@dataclass(frozen=True, eq=False)
class One(Variable):
    """The vector of ones, whose products with others are their means."""


@dataclass(frozen=True, eq=False)
class Bias(Variable):
    """A drawn vector, the same one for all examples: of kind A."""

    weight: Weight


@dataclass(frozen=True, eq=False)
class MatMul(Variable):
    """A drawn matrix times a vector: of kind G."""

    weight: Weight
    operand: Variable


@dataclass(frozen=True, eq=False)
class LinComb(Variable):
    """A sum of vectors with a factor for each: of kind G where all of them are."""

    terms: tuple[tuple[Coefficient, Variable], ...]


@dataclass(frozen=True, eq=False)
class Nonlin(Variable):
    """An activation, by name, of each value of one vector: of kind H."""

    activation: str
    operand: Variable
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Function(Variable):
    """A function of the values of several vectors, and its partial derivatives: of kind H.

    `value` takes an array for every operand and returns one; `partials` returns the derivative with
    respect to each. `text` is its formula, with {} for the operands.
    """

    operands: tuple[Variable, ...]
    value: Callable[..., Array]
    partials: Callable[..., tuple[Array, ...]]
    text: str
    #: True where the function works on the batch as a whole, not on each example alone.
    over_batch: bool = False


@dataclass(frozen=True, eq=False)
class Batched(Function):
    """The first operand normalised over each batch, with `eps` in the root; see `limits.batch`."""

    eps: float = field(kw_only=True)
    batches: tuple[slice, ...] = field(kw_only=True)


class Gate(NamedTuple):
    """A function of a Gaussian vector, which multiplies another vector, and its derivative."""

    of: Variable
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Gated(Function):
    """A sum of vectors times gates, which come from other matrices; see `limits.gates`."""

    terms: tuple[tuple[Gate, Variable], ...] = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Concat(Variable):
    """Vectors one after another in one vector, of which each takes a share of the entries."""

    parts: tuple[tuple[float, Variable], ...]


def parts_of(variable: Variable) -> tuple[tuple[float, Variable], ...]:
    """The vectors that stand one after another in one, with their shares."""
    return variable.parts if isinstance(variable, Concat) else ((1.0, variable),)


def is_gaussian(variable: Variable) -> bool:
    """True for the kinds A and G: jointly Gaussian with mean 0."""
    if isinstance(variable, LinComb):
        return all(is_gaussian(each) for _, each in variable.terms)
    return isinstance(variable, (Bias, MatMul))


def operands_of(variable: Variable) -> tuple[Variable, ...]:
    """The vectors that a variable is made of."""
    match variable:
        case MatMul() | Nonlin():
            return (variable.operand,)
        case LinComb():
            return tuple(each for _, each in variable.terms)
        case Function():
            return variable.operands
        case Concat():
            return tuple(each for _, each in variable.parts)
    return ()


def weights_of(variable: Variable) -> set[Weight]:
    """The matrices and biases that a Gaussian vector comes from."""
    if isinstance(variable, LinComb):
        return set().union(*(weights_of(each) for _, each in variable.terms))
    return {variable.weight} if isinstance(variable, (Bias, MatMul)) else set()


def entrywise(variable: Variable) -> tuple[Variable, ...]:
    """The vectors whose values make those of a variable; a drawn one is made of none."""
    return () if is_gaussian(variable) else operands_of(variable)


def behind(
    variables: list[Variable],
    operands: Callable[[Variable], tuple[Variable, ...]] = operands_of,
) -> list[Variable]:
    """All vectors that these are made of and themselves, each after its operands."""
    found: dict[Variable, None] = {}
    waiting: list[tuple[Variable, bool]] = [(each, False) for each in reversed(variables)]
    while waiting:
        variable, done = waiting.pop()
        if done:
            found.setdefault(variable)
        elif variable not in found:
            waiting.append((variable, True))
            waiting += [(each, False) for each in reversed(operands(variable))]
    return list(found)


ONE = One("1")
