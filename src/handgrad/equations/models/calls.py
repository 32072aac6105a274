"""The derivation of an op where a layer calls it, on what it is given there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np

from handgrad.documents.formulas.formula import Formula, FormulaRow, Fraction, Script, row
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.equations import DerivedEquation, PairDerivation, derive
from handgrad.equations.models.graph import PassGraph
from handgrad.equations.subject import Subject
from handgrad.ops import samples
from handgrad.program import Node, ProgramError, values_of
from handgrad.program.functions import is_array

#: The largest difference between the gradients of an op's equations and those of the layer.
_SAME: Final = 1e-4


class Calls:
    """Derives calls of ops in a layer, and says which gradients the layer asks them for.

    Unless `exact`, calls of one op on arrays of the same shapes share a derivation: their equations
    are the same, and have the values of the first.
    """

    def __init__(self, graph: PassGraph, sizes: Dimensions, lang: str, *, exact: bool) -> None:
        self.graph, self.sizes, self.lang, self.exact = graph, sizes, lang, exact
        self._derivations: dict[Any, PairDerivation] = {}

    def derived(self, call: Node) -> tuple[Subject, PairDerivation]:
        """The op on the arguments of a call. Raises ProgramError where the layer has other
        gradients than its equations."""
        op, back = op_of(call), self.graph.backward_of(call)
        module = import_module(f"handgrad.ops.{op}")
        arguments = {name: values_of(value) for name, value in call.kwargs.items()}
        arrays = {name: value for name, value in arguments.items() if is_array(value)}
        options = {name: value for name, value in arguments.items() if name not in arrays}
        dy = _zeros(call.value[0]) if back is None else values_of(back.args[0])
        names = samples.gradient_names(op)
        forward, backward = inspect.unwrap(module.forward), inspect.unwrap(module.backward)
        subject = Subject(op, forward, backward, arrays, options, dy, names)
        key = repr((op, _shapes(arrays), _shapes(dy), _settled(options)))
        if not self.exact and key in self._derivations:
            return subject, self._derivations[key]
        derivation = self._derivations[key] = derive(subject, self.lang, dimensions=self.sizes)
        for name, gradient in self._given(back):
            if not are_close(gradient, derivation.gradients[name]):
                raise ProgramError(f"notes: {op} gives another gradient of {name} in the layer")
        return subject, derivation

    def backward(self, call: Node, derivation: PairDerivation) -> list[DerivedEquation]:
        """The equations of the gradients that the layer asks for."""
        back = self.graph.backward_of(call)
        if back is None:
            return []
        names = samples.gradient_names(op_of(call))
        given = {f"d{name}" for name, _ in self._given(back)}
        others = {f"d{name}" for name in names} - given
        found = [each for each in derivation.backward if each.name not in others]
        if f"d{names[0]}" in given:
            return found
        wanted = derivation.behind_parameters | given
        return [each for each in found if each.name in wanted]

    def _given(self, back: Node | None) -> Iterator[tuple[str, Any]]:
        """The gradients that a call gave, as they were then, by the names of the op's inputs."""
        if back is None:
            return
        elements = {each.args[1]: each.value for each in self.graph.outputs[back]}
        for position, (name, value) in enumerate(
            zip(samples.gradient_names(op_of(back)), back.value[0], strict=False)
        ):
            if is_array(value):
                yield name, elements.get(position, value)


def op_of(call: Node) -> str:
    """The name of the op of a forward or a backward."""
    return call.op.rpartition(".")[0]


def outputs_of(derivation: PairDerivation) -> list[Formula]:
    """The symbols of an op's outputs: y for ∂L/∂y that comes in, and for ∂L/∂y_t."""
    return [_without_step(each, derivation.counter) for each in derivation.arriving]


def are_close(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=_SAME, atol=_SAME)


def _without_step(gradient: Formula, counter: Formula | None) -> Formula:
    assert isinstance(gradient, Fraction)
    assert isinstance(gradient.denominator, FormulaRow)
    symbol = row(*gradient.denominator.parts[1:])
    if isinstance(symbol, Script) and counter is not None and symbol.sub == counter:
        return symbol.base if symbol.sup is None else Script(symbol.base, sup=symbol.sup)
    return symbol


def _zeros(y: Any) -> Any:
    return tuple(map(_zeros, y)) if isinstance(y, tuple) else np.zeros_like(y)


def _shapes(value: Any) -> Any:
    """The shapes and types of arrays; a generator is like any other."""
    if isinstance(value, dict):
        return {name: _shapes(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_shapes, value))
    return (np.shape(value), value.dtype) if is_array(value) else type(value)


def _settled(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The settings, without the state of generators."""
    return [
        (name, None if isinstance(value, np.random.Generator) else value)
        for name, value in options.items()
    ]
