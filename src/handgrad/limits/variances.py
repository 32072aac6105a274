"""The variances with which a layer's parameters are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

from handgrad import initializers
from handgrad.errors import ArgumentError
from handgrad.initializers import Initializer
from handgrad.limits.variables import Weight


class ParameterDistribution(NamedTuple):
    """The distribution of a parameter: `kind` is "weight" or "bias".

    The variance is that of an entry where `of_entry`, else times the number of columns.
    """

    kind: str
    variance: float
    of_entry: bool


class Variances:
    """Variances of weights and biases: given, or else those of the layers' initializers.

    `weight` is the variance of an entry times the number of columns, `bias` that of an entry: a
    number for all, or numbers by the parameter's name, such as {"0.weight": 2.0}.
    """

    def __init__(
        self,
        weight: float | Mapping[str, float] | None,
        bias: float | Mapping[str, float] | None,
    ) -> None:
        self._given = {"weight": weight, "bias": bias}
        #: The variances that were asked for, by the parameter's name.
        self.used: dict[str, ParameterDistribution] = {}
        for kind, given in self._given.items():
            for number in given.values() if isinstance(given, Mapping) else (given,):
                if number is not None or isinstance(given, Mapping):
                    check_variance(f"{kind}_variance", number)

    def of(
        self, kind: str, name: str, initializer: Initializer, shape: tuple[int, ...], scale: float
    ) -> Weight:
        """The matrix or vector of this name; `scale` is the number of columns, 1 for a vector."""
        given = self._given[kind]
        if isinstance(given, Mapping):
            given = given.get(name)
        if given is None:
            given = scale * initializers.variance(initializer, shape)
        self.used[name] = ParameterDistribution(kind, float(given), scale == 1.0)
        return Weight(name, float(given))

    def check_used(self) -> None:
        """Raise ArgumentError for a name that no parameter of its kind has."""
        for kind, given in self._given.items():
            allowed = sorted(name for name, drawn in self.used.items() if drawn.kind == kind)
            names = given if isinstance(given, Mapping) else ()
            unknown = [name for name in names if name not in allowed]
            if unknown:
                raise ArgumentError(
                    f"limits: {kind}_variance has {unknown[0]!r}; "
                    f"allowed: {', '.join(allowed) or 'none'}"
                )


def check_variance(name: str, value: Any) -> None:
    """Raise ArgumentError for what is no number from 0."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= 0.0):
        raise ArgumentError(f"limits: {name} is {value!r}; allowed: 0 or more, finite")
