"""The variances with which a layer's parameters are drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from handgrad import initializers
from handgrad.errors import ArgumentError
from handgrad.initializers import Initializer
from handgrad.limits.variables import Weight


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
        #: What was asked for: the variance by the parameter's name, and whether it is of an entry.
        self.used: dict[str, tuple[float, bool]] = {}
        for kind, given in self._given.items():
            numbers = given.values() if isinstance(given, Mapping) else [given or 0.0]
            for number in numbers:
                if not (np.isfinite(number) and number >= 0.0):
                    raise ArgumentError(
                        f"limits: {kind}_variance is {number}; allowed: 0 or more, finite"
                    )

    def of(
        self, kind: str, name: str, initializer: Initializer, shape: tuple[int, ...], scale: float
    ) -> Weight:
        """The matrix or vector of this name; `scale` is the number of columns, 1 for a vector."""
        given = self._given[kind]
        if isinstance(given, Mapping):
            given = given.get(name)
        if given is None:
            given = scale * initializers.variance(initializer, shape)
        self.used[name] = float(given), scale == 1.0
        return Weight(name, float(given))

    def check_used(self) -> None:
        """Raise ArgumentError for a name that no parameter has."""
        for kind, given in self._given.items():
            names = given if isinstance(given, Mapping) else ()
            unknown = [name for name in names if name not in self.used]
            if unknown:
                raise ArgumentError(
                    f"limits: {kind}_variance has {unknown[0]!r}; "
                    f"allowed: {', '.join(sorted(self.used))}"
                )
