"""Sums that the user states to be constant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from handgrad.errors import ArgumentError

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
