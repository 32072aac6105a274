"""Arrays whose axes have letters, and meet by these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from handgrad.documents.formulas.formula import Formula, Symbol

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": np.maximum,
    "min": np.minimum,
    "erf": special.erf,
    "erfc": special.erfc,
    "Re": np.real,
    "Im": np.imag,
    **{
        name: getattr(np, name)
        for name in ("exp", "log", "log2", "sign", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    **{name: getattr(np, name) for name in ("arcsin", "arccos", "arctan", "round")},
}
LETTERED: Mapping[Formula, Callable[[Any], Any]] = {
    Symbol("sigma"): special.expit,
    Symbol("Gamma"): special.gamma,
    Symbol("psi"): special.digamma,
}
BIG: Mapping[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
}
FENCES: Mapping[str, Callable[[Any], Any]] = {"|": np.abs, "⌊": np.floor, "⌈": np.ceil}
#: The indices of sums, in the order of the axes that they stand for.
INDICES = tuple(map(Symbol, "ijklmnpqrsabcfgh"))


class UnreadableError(AssertionError):
    """A formula that says nothing, or too little, to who knows only the page."""


@dataclass(frozen=True)
class Value:
    """An array whose axes have letters, or None where the length is no letter."""

    array: Any
    axes: tuple[Formula | None, ...]

    def over(self, letters: Sequence[Formula], reduce: Callable[..., Any]) -> Value:
        """Reduced over the axes with these letters, which are gone then."""
        places = []
        for letter in letters:
            found = [place for place, each in enumerate(self.axes) if each == letter]
            if len(found) != 1:
                raise UnreadableError(f"{letter} is not one of the axes {self.axes}")
            places += found
        rest = tuple(each for place, each in enumerate(self.axes) if place not in places)
        return Value(reduce(self.array, axis=tuple(places)), rest)

    def by_place(self, lengths: Mapping[int, Formula]) -> Value:
        """By places, if all axes have indices of sums: their order is that of the axes."""
        if not self.axes or not set(self.axes) <= set(INDICES):
            return self
        order = sorted(range(len(self.axes)), key=lambda k: INDICES.index(self.axes[k]))
        array = np.transpose(self.array, order)
        return Value(array, tuple(map(lengths.get, array.shape)))

    def narrow(self) -> Value:
        """Without the axes of length 1 that have no letter."""
        kept = [
            k for k, each in enumerate(self.axes) if each is not None or self.array.shape[k] > 1
        ]
        shape = [self.array.shape[k] for k in kept]
        return Value(self.array.reshape(shape), tuple(self.axes[k] for k in kept))


def scalar(number: Any) -> Value:
    return Value(np.asarray(number), ())


def together(one: Value, other: Value) -> tuple[Any, Any, tuple[Formula | None, ...]]:
    """Two arrays that fit each other, and the letters of what they make."""
    most = max(len(one.axes), len(other.axes))
    full = [(None,) * (most - len(each.axes)) + each.axes for each in (one, other)]
    sizes = [(1,) * (most - each.array.ndim) + each.array.shape for each in (one, other)]
    shared = set(one.axes) & set(other.axes) - {None}
    if all(full[0].index(each) == full[1].index(each) for each in shared) and all(
        1 in (a, b) or a == b for a, b in zip(*sizes, strict=True)
    ):
        letters = tuple(y if a == 1 else x for x, y, a in zip(*full, sizes[0], strict=True))
        return one.array.reshape(sizes[0]), other.array.reshape(sizes[1]), letters
    one, other = one.narrow(), other.narrow()
    order = list(one.axes if len(one.axes) >= len(other.axes) else other.axes)
    order += [each for each in (*one.axes, *other.axes) if each not in order]
    if None in order or len(set(order)) != len(order):
        raise UnreadableError(f"{one.axes} and {other.axes} do not fit each other")
    return placed(one, order), placed(other, order), tuple(order)


def in_place(one: Value, other: Value) -> Value:
    """A value written by some of the indices beside an array: i counts along its first axis."""
    places = [INDICES.index(each) for each in one.axes if each in INDICES]
    if not places or len(places) != len(one.axes) or max(places) >= len(other.axes):
        return one
    shape = [1] * len(other.axes)
    for place, size in zip(places, one.array.shape, strict=True):
        shape[place] = size
    fits = all(a in (1, b) for a, b in zip(shape, other.array.shape, strict=True))
    if not fits or places != sorted(places):
        return one
    axes = [None if n == 1 else each for n, each in zip(shape, other.axes, strict=True)]
    return Value(one.array.reshape(shape), tuple(axes))


def placed(value: Value, order: Sequence[Formula | None]) -> Any:
    kept = [each for each in order if each in value.axes]
    turned = np.transpose(value.array, [value.axes.index(each) for each in kept])
    sizes = iter(turned.shape)
    return turned.reshape([next(sizes) if each in value.axes else 1 for each in order])


def same(found: Any, wanted: Any) -> None:
    """Equal but for what six digits of a printed number leave open."""
    largest = np.max(np.abs(wanted), initial=0.0)
    np.testing.assert_allclose(found, wanted, 0.0, 1e-5 * largest + 1e-12)
