"""Sums that are constant: those that the user states, and those that hold in both runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from handgrad.deriving.arrays import Graph
from handgrad.deriving.simplify import Fact
from handgrad.errors import ArgumentError

#: A sum that is constant up to this is constant.
_SAME: Final = 1e-10
_SUM: Final = re.compile(r"(?:np\.)?sum\((\w+),(?:axis=)?(-?\d+)\)")


@dataclass(frozen=True)
class Assumption:
    """A stated fact: the sum of an argument over an axis."""

    text: str
    name: str
    axis: int
    value: float

    def make_true(self, arguments: dict[str, Any]) -> None:
        """Change the argument so that the fact holds."""
        if self.name not in arguments or np.ndim(arguments[self.name]) == 0:
            raise ArgumentError(
                f"derive: assume {self.text!r}: {self.name} is no array; allowed: an argument"
            )
        array = np.asarray(arguments[self.name], float)
        if self.value == 0:
            arguments[self.name] = array - array.mean(self.axis, keepdims=True)
            return
        positive = np.abs(array) + 0.1
        arguments[self.name] = positive * (self.value / positive.sum(self.axis, keepdims=True))

    def fact(self, graph: Graph) -> Fact | None:
        if self.name not in graph.arrays:
            return None
        axis = self.axis % len(graph[self.name].axes)
        return Fact(
            self.name,
            frozenset({axis}),
            Fraction(repr(self.value)),
            f"assumed: {self.text} = {self.value:g}",
        )


def assumptions(given: Mapping[str, float]) -> list[Assumption]:
    """Facts such as {"sum(q, -1)": 1}. Raises ArgumentError for any other form."""
    found = []
    for text, value in given.items():
        stated = _SUM.fullmatch(text.replace(" ", ""))
        if stated is None or not isinstance(value, int | float):
            raise ArgumentError(
                f"derive: assume has {text!r}: {value!r}; allowed: sums over one axis, as "
                '"sum(q, -1)": 1'
            )
        found.append(Assumption(text, stated[1], int(stated[2]), float(value)))
    return found


def found_facts(graph: Graph) -> list[Fact]:
    """Sums of computed arrays over axes that are 0 or 1 everywhere, in both runs.

    Those of arguments are none: they hold for the example alone.
    """
    found = []
    for array in list(graph.arrays.values()):
        if array.node is None or array.node.op == "input" or not array.is_active:
            continue
        axes = [at for at, axis in enumerate(array.axes) if axis is not None]
        for over in itertools.chain(*(itertools.combinations(axes, n) for n in (1, 2))):
            sums = [np.asarray(env[array.name]).sum(axis=over) for env in graph.values]
            sizes = [np.abs(np.asarray(env[array.name])).sum(axis=over) for env in graph.values]
            for value in (0, 1):
                if all(
                    np.all(np.abs(s - value) <= _SAME * np.maximum(n, 1e-300)) and np.any(n)
                    for s, n in zip(sums, sizes, strict=True)
                ):
                    axis = over[0] if len(over) == 1 else over
                    why = f"sum({array.name}, {axis}) = {value}"
                    found.append(Fact(array.name, frozenset(over), Fraction(value), why))
    return found
