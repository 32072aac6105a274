"""The arrays of a derivation: those of the forward, and those that a backward makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handgrad.deriving.evaluation import value_of
from handgrad.deriving.sizes import Sizes
from handgrad.deriving.terms import Index, Power, Sum, of
from handgrad.program.nodes import Node


@dataclass
class Array:
    """An array by its name.

    axes: the dimension of each axis, None where its length is one. definition: it as a sum of
    products of others, where it is one. code: it as Python otherwise; `zeros[index] <- value` is
    an array of zeros into which a value is added.
    """

    name: str
    axes: tuple[str | None, ...]
    definition: Sum | None = None
    code: str = ""
    reads: tuple[str, ...] = ()
    node: Node | None = None
    is_backward: bool = False
    is_active: bool = True

    @property
    def layout(self) -> tuple[Index | None, ...]:
        """The index of each axis; None where its length is one."""
        return free(self.axes)

    @property
    def indices(self) -> tuple[Index, ...]:
        return tuple(index for index in self.layout if index is not None)


def free(axes: tuple[str | None, ...]) -> tuple[Index | None, ...]:
    """The indices of an array's own axes: each dimension counted from 0."""
    seen: dict[str, int] = {}
    found: list[Index | None] = []
    for each in axes:
        if each is None:
            found.append(None)
            continue
        found.append(Index(each, seen.get(each, 0)))
        seen[each] = seen.get(each, 0) + 1
    return tuple(found)


@dataclass
class Graph:
    """All arrays in the order in which they can be computed, and their values in the runs."""

    sizes: Sizes
    arrays: dict[str, Array] = field(default_factory=dict)
    values: tuple[dict[str, Any], dict[str, Any]] = field(default_factory=lambda: ({}, {}))
    settings: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def add(self, array: Array, *values: Any) -> Array:
        """A further array; its values are computed from its code where none are given."""
        self.arrays[array.name] = array
        for run, env in enumerate(self.values):
            env[array.name] = values[run] if values else self.evaluate(array, run)
        return array

    def factor(self, name: str, power: Power = 1) -> Sum:
        """The array, over its own indices."""
        return of(name, self[name].indices, power)

    def unique(self, name: str) -> str:
        """The name, or with a number where it is taken."""
        taken = self.arrays.keys() | self.sizes.lengths.keys() | self.settings.keys()
        if name not in taken:
            return name
        return next(f"{name}_{i}" for i in range(2, 1000) if f"{name}_{i}" not in taken)

    def length(self, dimension: str, run: int) -> int:
        return self.sizes.value(dimension, run)

    def evaluate(self, array: Array, run: int) -> Any:
        """An array's value in a run, by its sum or its code."""
        if array.definition is not None:
            return self.value(array.definition, array.axes, run)
        lengths = {letter: both[run] for letter, both in self.sizes.lengths.items()}
        names = {**lengths, **self.settings, **self.values[run]}
        code, arrow, value = array.code.partition(" <- ")
        if not arrow:
            return np.asarray(value_of(code, names))
        zeros, _, index = code.partition(")[")
        found = value_of(zeros + ")", names)
        np.add.at(found, value_of(f"np.s_[{index[:-1]}]", names), value_of(value, names))
        return found

    def value(
        self, sum_: Sum, axes: tuple[str | None, ...], run: int, *, absolute: bool = False
    ) -> Any:
        """A sum over the indices of these axes, in float64; or of the sizes of what it adds."""
        layout = free(axes)
        shape = [1 if i is None else self.length(i.dimension, run) for i in layout]
        total: Any = np.zeros([n for n, i in zip(shape, layout, strict=True) if i is not None])
        wanted = [index for index in layout if index is not None]
        for (factors, _), coefficient in sum_.items():
            operands: list[Any] = []
            numbers: dict[Index, int] = {}

            def number(index: Index, numbers: dict[Index, int] = numbers) -> int:
                return numbers.setdefault(index, len(numbers))

            times = float(abs(coefficient) if absolute else coefficient)
            for each in factors:
                if each.is_size:
                    times *= float(self.length(each.name[1:], run)) ** float(each.power)
                    continue
                array = self._mask(each.name, run) if each.is_mask else self._array(each.name, run)
                array = np.abs(array) if absolute else array
                operands.append(array ** float(each.power) if each.power != 1 else array)
                operands.append([number(index) for index in each.indices])
            have = {index for each in factors for index in each.indices}
            for index in wanted:
                if index not in have:
                    operands += [np.ones(self.length(index.dimension, run)), [number(index)]]
            out = [number(index) for index in wanted]
            product = np.einsum(*operands, out, optimize=len(operands) > 4) if operands else 1.0
            total = total + times * product
        return np.reshape(total, shape)

    def _array(self, name: str, run: int) -> Any:
        if name not in self.arrays:
            return np.asarray(self.settings[name], float)
        value = np.asarray(self.values[run][name])
        kept = [n for n, axis in zip(value.shape, self[name].axes, strict=True) if axis is not None]
        return value.reshape(kept).astype(float)

    def _mask(self, name: str, run: int) -> Any:
        inverted = name.startswith("[~")
        array = self._array(name[2:-1] if inverted else name[1:-1], run) != 0
        return (~array if inverted else array).astype(float)

    def in_order(self, names: Iterable[str]) -> list[Array]:
        """These arrays, each behind all that it is computed from."""
        waiting, done = list(dict.fromkeys(names)), set[str]()
        found: list[Array] = []

        def visit(name: str) -> None:
            if name in done or name not in self.arrays:
                return
            done.add(name)
            for each in sorted(self.reads(self[name])):
                visit(each)
            if name in waiting:
                found.append(self[name])

        for name in waiting:
            visit(name)
        return found

    def reads(self, array: Array) -> set[str]:
        """The arrays that one is computed from."""
        if array.definition is None:
            return set(array.reads)
        return {owner(f.name) for t in array.definition for f in t.factors if not f.is_size}


def owner(name: str) -> str:
    """The array that a factor stands for: that of a mask without its brackets."""
    return name.strip("[~]") if name.startswith("[") else name
