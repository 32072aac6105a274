"""Values of a program's vectors, and their derivatives, from values of the Gaussian ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.limits.variables import (
    Function,
    LinComb,
    Nonlin,
    One,
    Variable,
    is_gaussian,
)
from handgrad.ops.activation import activate, activation_gradient

#: A factor of a sum as an array that goes with the values.
Placed = Callable[[Any], Any]


def value_of(
    variable: Variable, known: Mapping[Variable, Array], placed: Placed, ones: Array
) -> Array:
    """The values of a vector from those of the vectors that it is made of.

    Raises ArgumentError for a vector of the input, whose entries are no draws.
    """
    match variable:
        case One():
            return ones
        case LinComb():
            terms = [placed(factor) * known[each] for factor, each in variable.terms]
            return np.asarray(sum(terms))
        case Nonlin():
            return activate(known[variable.operand], variable.activation, **variable.options)
        case Function():
            return variable.value(*(known[each] for each in variable.operands))
    raise ArgumentError(
        f"limits: {variable.name} is a vector of the input; allowed: an activation after a "
        "layer with weights, since the entries of an input are not draws"
    )


def slopes_of(
    variable: Variable,
    known: Mapping[Variable, Array],
    below: Mapping[Variable, dict[Variable, Array]],
    placed: Placed,
    ones: Array,
) -> dict[Variable, Array]:
    """The derivatives of a vector by the Gaussian ones, from those of what it is made of, `below`.

    Raises ArgumentError for a function of the batch as a whole.
    """
    if is_gaussian(variable):
        return {variable: ones}
    pairs: list[tuple[Variable, Any]] = []
    match variable:
        case LinComb():
            pairs = [(each, placed(factor)) for factor, each in variable.terms]
        case Nonlin():
            operand = known[variable.operand]
            dy = np.ones_like(operand)
            slope = activation_gradient(dy, operand, variable.activation, **variable.options)
            pairs = [(variable.operand, slope)]
        case Function():
            if variable.over_batch:
                raise ArgumentError(
                    "limits: kind is 'ntk', and BatchNorm's statistics depend on the batch as "
                    "a whole; allowed with BatchNorm: 'nngp'"
                )
            slopes = variable.partials(*(known[each] for each in variable.operands))
            pairs = list(zip(variable.operands, slopes, strict=True))
    found: dict[Variable, Array] = {}
    for operand_variable, slope in pairs:
        for source, inner in below[operand_variable].items():
            through = slope * inner
            found[source] = found[source] + through if source in found else through
    return found
