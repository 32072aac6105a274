"""From a derivation to the story of its run: the arrays, and a step for every equation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from handgrad.documents.formulas.formula import (
    Formula,
    Sign,
    Text,
    gradient_of,
    row,
)
from handgrad.documents.story import PLACE, Pane, Quantity, Result, Story, StoryStep, Tree
from handgrad.equations.alive.opening import Opener, leaves_of, written
from handgrad.equations.derived import Arrived, DerivedEquation
from handgrad.equations.glossary import subscript
from handgrad.equations.models.symbols import of_gradient, uncopied
from handgrad.program import Node
from handgrad.program.functions import is_array

#: An array with more elements is not opened.
_MOST_ELEMENTS: Final = 1_024
#: A story whose elements have more leaves in all has numbers, and opens no more of them.
_MOST_LEAVES: Final = 200_000
#: How far the same number is apart in two runs, of a layer and of its op alone, in float32.
_SAME: Final = 1e-4

Opened = tuple[tuple[Tree, ...], tuple[tuple[int, ...], ...]]
Parts = tuple[tuple[Formula, Any], ...]


def story(
    forward: Iterable[DerivedEquation],
    backward: Iterable[DerivedEquation],
    anchor: Callable[[DerivedEquation], str],
) -> Story:
    """The steps of both passes; `anchor` says where an equation stands on the page."""
    return _Teller(anchor).told(forward, backward)


class _Teller:
    def __init__(self, anchor: Callable[[DerivedEquation], str]) -> None:
        self.anchor = anchor
        self.known: dict[Node, int] = {}
        self.by_symbol: dict[Formula, int] = {}
        self.quantities: list[Quantity] = []
        self.steps: list[StoryStep] = []
        self.opener = Opener(self.known)
        self.leaves = 0

    def told(
        self, forward: Iterable[DerivedEquation], backward: Iterable[DerivedEquation]
    ) -> Story:
        for equation in forward:
            self._tell(equation, "forward")
        for equation in backward:
            self._tell(equation, "backward")
        return Story(tuple(self._paired()), tuple(self.steps), self.opener.is_whole)

    def _arrive(self, arrived: Arrived) -> None:
        """An array by the quantity that has its symbol and its numbers, else as a new one."""
        if arrived.node in self.known:
            return
        number = self.by_symbol.get(arrived.symbol)
        value = np.asarray(arrived.node.value)
        if number is not None and _are_alike(self.quantities[number].values, value):
            self.known[arrived.node] = number
        else:
            parts, name = arrived.parts, arrived.name
            self._add(arrived.node, arrived.symbol, name, parts, arrived.is_gradient)

    def _tell(self, equation: DerivedEquation, phase: Literal["forward", "backward"]) -> None:
        for each in equation.arrived:
            self._arrive(each)
        here = equation.here or equation
        found = [
            (each, *symbols)
            for each in equation.nodes
            if is_array(each.value) and (symbols := _symbols(here, each)) is not None
        ]
        self.opener.is_whole &= bool(found) and not equation.is_decided
        if not found:
            return
        if here.says_nothing and all(node in self.known for node, _, _ in found):
            for node, symbol, parts in found:
                if not node.operands:
                    self._rename(node, symbol, parts)
            return
        opened = [self._opened(node, here.right) for node, _, _ in found]
        results = tuple(
            Result(self._add(node, symbol, equation.name, parts, phase == "backward"), *each)
            for (node, symbol, parts), each in zip(found, opened, strict=True)
        )
        operands = dict.fromkeys(
            each for trees, _ in opened for t in trees for each in leaves_of(t)
        )
        formula = row(here.left, Sign("←" if here.updates else "="), here.right)
        if here.says_nothing:
            formula = here.left
        anchor = self.anchor(equation)
        self.steps.append(
            StoryStep(phase, formula, anchor, tuple(operands), results, equation.step)
        )

    def _opened(
        self, node: Node, right: Formula
    ) -> tuple[tuple[Tree, ...], tuple[tuple[int, ...], ...]]:
        if np.size(node.value) > _MOST_ELEMENTS or self.leaves > _MOST_LEAVES:
            self.opener.is_whole = False
            return (), ()
        number = self.known.get(node)
        is_named = number is not None and self.quantities[number].symbol == right
        elements = self.opener.opened(node, as_it_is=is_named)
        if elements is None:
            return (), ()
        trees, opened = written(elements)
        self.leaves += sum(map(len, opened))
        return trees, opened

    def _add(self, node: Node, symbol: Formula, name: str, parts: Parts, backward: bool) -> int:
        value = np.asarray(node.value)
        values = tuple(float(each) for each in value.ravel().tolist())
        panes = tuple(_panes(value, parts))
        self.known[node] = self.by_symbol[symbol] = len(self.quantities)
        self.quantities.append(Quantity(symbol, name, value.shape, values, panes, backward))
        return self.known[node]

    def _rename(self, node: Node, symbol: Formula, parts: Parts) -> None:
        """What came in goes by the symbol that the equations have for it."""
        number = self.by_symbol[symbol] = self.known[node]
        panes = tuple(_panes(np.asarray(node.value), parts))
        self.quantities[number] = replace(self.quantities[number], symbol=symbol, panes=panes)

    def _paired(self) -> Iterator[Quantity]:
        """Every gradient beside what it is the gradient of."""
        of = {each.symbol: i for i, each in enumerate(self.quantities) if not each.backward}
        for each in self.quantities:
            symbol = of_gradient(each.symbol)
            beside = of.get(symbol, of.get(uncopied(symbol))) if each.backward else None
            yield each if beside is None else replace(each, beside=beside)


def _are_alike(values: tuple[float, ...], other: Any) -> bool:
    """The same numbers, but for the rounding of another run of the same lines."""
    if len(values) != other.size:
        return False
    return np.allclose(values, other.ravel(), rtol=_SAME, atol=_SAME, equal_nan=True)


def _symbols(equation: DerivedEquation, node: Node) -> tuple[Formula, Parts] | None:
    """The symbol of a node of an equation, and of the parts that it has."""
    for symbol, value in equation.parts:
        if value is node.value:
            return symbol, ((symbol, value),)
    return (equation.left, equation.parts) if len(equation.nodes) == 1 else None


def _panes(value: Any, parts: Parts) -> list[Pane]:
    """The matrices of an array: of each part that has a symbol, and of each of its slices."""
    indices = np.arange(value.size).reshape(value.shape)
    axis = _axis_of(value, parts[0][1], len(parts)) if len(parts) > 1 else None
    if axis is not None:
        steps = ((label, np.take(indices, i, axis)) for i, (label, _) in enumerate(parts))
        return [
            replace(each, symbol=label) for label, part in steps for each in _slices(part, label)
        ]
    return _slices(indices, parts[0][0])


def _slices(indices: Any, symbol: Formula) -> list[Pane]:
    """The matrices of the last two axes, by the indices of the axes before that have several."""
    lines = np.atleast_2d(indices)
    outer = lines.shape[:-2]
    return [
        Pane(
            tuple(tuple(int(each) for each in line) for line in lines[place]),
            _indexed(symbol),
            index=tuple(i + 1 for i, size in zip(place, outer, strict=True) if size > 1),
        )
        for place in np.ndindex(*outer)
    ]


def _indexed(symbol: Formula) -> Formula:
    """The symbol of an element; the index of a gradient stands below."""
    of = of_gradient(symbol)
    place = Text(PLACE)
    return subscript(symbol, place) if of is symbol else gradient_of(subscript(of, place))


def _axis_of(value: Any, part: Any, count: int) -> int | None:
    """The axis along which an array has so many parts of this shape."""
    shape = np.shape(part)
    for axis, size in enumerate(value.shape):
        if size == count and (*value.shape[:axis], *value.shape[axis + 1 :]) == shape:
            return axis
    return None
