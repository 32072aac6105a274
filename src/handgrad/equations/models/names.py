"""What the names of an op are called in a model, where every layer has symbols of its own."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

import numpy as np

from handgrad.documents.formulas.formula import (
    Accent,
    Formula,
    Fraction,
    Number,
    Operator,
    Script,
    Sign,
    Symbol,
    Text,
    parts_in,
    row,
)
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.equations import PairDerivation
from handgrad.equations.models.flow import Flow, Node
from handgrad.equations.models.symbols import numbered, parameter_symbol, value_symbol
from handgrad.equations.subject import Subject
from handgrad.layers import Activation, Layer
from handgrad.layers.base import walk
from handgrad.program.sizes import Size

#: What fused layers call for their activation.
FUSED: Final = frozenset({"activate", "activation_gradient"})
_FUNCTION: Final = Symbol("f")
_PRIME: Final = Sign("′")


@dataclass(frozen=True)
class Sizes(Dimensions):
    """Sizes as they are, but N for the batch, if it has a letter; it divides no other size."""

    def size(self, size: Size | int) -> Formula:
        count = Size.of(size).number({})
        for letter, batch in self.lengths.items():
            if count and count % batch == 0:
                times = [] if count == batch else [Number(str(count // batch))]
                return row(*times, Symbol(letter))
        return Number(str(count))

    def letter(self, size: Size) -> str | None:
        return next((each for each, n in self.lengths.items() if Size.of(n) == size), None)


def parameters_of(node: Node) -> dict[str, Formula]:
    """The symbol of every parameter of a node, by its name in the layer."""
    if node.is_sum:
        return {}
    return {
        name: parameter_symbol(name, np.ndim(array), node.number)
        for name, array in node.layer.parameters.items()
    }


def full_name(node: Node, name: str) -> str:
    """A parameter's name in the model."""
    return f"{node.name}.{name}" if node.name else name


def numbered_names(
    derivation: PairDerivation, subject: Subject, number: int | str
) -> dict[Formula, Formula]:
    """The op's symbols with the number of a node or part."""
    names: dict[Formula, Formula] = {}
    every = set(_symbols(derivation, subject))
    for symbol in every:
        if isinstance(symbol, Script) and _is_step(symbol, every, derivation.counter):
            symbol = symbol.base
        if isinstance(symbol, Fraction):
            names[symbol.denominator] = numbered(symbol.denominator, number)
        elif isinstance(symbol, Symbol | Script | Accent | Text):
            names[symbol] = numbered(symbol, number)
    return names


def _is_step(symbol: Script, every: set[Formula], counter: Formula | None) -> bool:
    """True for h_t, and for h_0 where h is a symbol too."""
    if is_first_state(symbol, every, counter):
        return True
    return symbol.sup is None and counter is not None and symbol.sub == counter


def is_first_state(
    symbol: Formula, every: Container[Formula], counter: Formula | None
) -> TypeGuard[Script]:
    """True for h_0 where h is a symbol too, and steps are counted."""
    return (
        isinstance(symbol, Script)
        and symbol.sup is None
        and counter is not None
        and isinstance(symbol.sub, Number)
        and symbol.base in every
    )


def loss_names(derivation: PairDerivation, first: str, output: int) -> dict[Formula, Formula]:
    """The loss keeps its symbols, except that x is the output of the model."""
    accents = [each.symbol for each in derivation.symbols if isinstance(each.symbol, Accent)]
    kept: dict[Formula, Formula] = {symbol: symbol for symbol in accents}
    return {**kept, derivation.glossary.symbol(first): value_symbol(output)}


def activation_of(node: Node) -> str | None:
    """The activation that a fused layer applies; None for any other layer."""
    return _activation(node.layer)


def _activation(layer: Layer) -> str | None:
    if isinstance(layer, Activation):
        return None
    options = getattr(layer, "options", {})
    found = options.get("activation", getattr(layer, "activation", None))
    return found if isinstance(found, str) else None


def activations_of(flow: Flow) -> dict[str, dict[str, Any]]:
    """The activations of fused layers, with the options of the first layer that has each."""
    found: dict[str, dict[str, Any]] = {}
    for _, layer in (each for node in flow.nodes for each in walk(node.layer)):
        activation = _activation(layer)
        if activation not in (None, "identity"):
            options = getattr(layer, "options", {})
            given = {name: value for name, value in options.items() if name != "activation"}
            found.setdefault(str(activation), given)
    return found


def activation_names(activation: str | None) -> dict[Formula, Formula]:
    """relu and relu′ for f and f′."""
    if activation is None:
        return {}
    function = activation_operator(activation)
    return {
        _FUNCTION: function,
        Script(_FUNCTION, sup=_PRIME): Script(function, sup=_PRIME),
    }


def activation_operator(activation: str) -> Operator:
    return Operator(activation.replace("_", ""))


def _symbols(derivation: PairDerivation, subject: Subject) -> Iterator[Formula]:
    """The symbols of arrays and settings, not those of gradients and functions."""
    glossary = derivation.glossary
    functions = {each.name for each in derivation.symbols if each.words}
    used = {each.name for each in (*derivation.symbols, *derivation.kept)}
    used |= set(glossary.gradients.values())
    for name in (*subject.arrays, *sorted(used - functions)):
        symbol = glossary.symbol(name)
        if name not in glossary.gradients and Symbol("partial") not in parts_in(symbol):
            yield symbol
