"""What is written of one op in a model: its derivation with the symbols of its place."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    Symbol,
    gradient_of,
    parts_in,
    row,
)
from handgrad.equations.equations import DerivedEquation, Meaning, PairDerivation, derive
from handgrad.equations.models.flow import Node
from handgrad.equations.models.names import activation_operator
from handgrad.equations.models.symbols import Renaming, is_gradient, renamed
from handgrad.equations.subject import Subject


@dataclass(frozen=True)
class WrittenNode:
    """What is written of one node, or of the loss, which has no node.

    `is_opaque` where the layer's own code can be read neither as an op nor as several.
    """

    node: Node | None
    forward: tuple[OpCall, ...]
    backward: tuple[OpCall, ...]
    is_opaque: bool = False
    others: tuple[Other, ...] = ()


class Block(NamedTuple):
    """One of several alike: the stack that it is in, its number from 1, and what counts them."""

    stack: str
    number: int
    counter: Formula


@dataclass(frozen=True)
class OpCall:
    """One call of an op in one of the passes, or values between such calls.

    `settings` are numbers that its equations use, `functions` what they call; `path` is the layer
    that it belongs to, by its name within the node; `loop` is the number of the loop that it is
    in, and the round; `block` says the same to a reader. A node that is one op has one part,
    without a number.
    """

    equations: tuple[DerivedEquation, ...]
    settings: tuple[Meaning, ...] = ()
    functions: tuple[Meaning, ...] = ()
    number: str = ""
    name: str = ""
    path: str = ""
    loop: tuple[str, int] | None = None
    block: Block | None = None


@dataclass(frozen=True)
class Other:
    """Another form of a layer's backward: the method, what it says of itself, and its parts."""

    name: str
    words: str
    parts: tuple[OpCall, ...]


def step_of(
    node: Node | None,
    derivation: PairDerivation,
    names: Mapping[Formula, Formula],
    subject: Subject,
) -> WrittenNode:
    """A derivation with other symbols, and with the settings that the layer has."""
    forward = without_identity(rewritten(each, names) for each in derivation.forward)
    backward = tuple(rewritten(each, names) for each in derivation.backward)
    meanings = meanings_of(derivation, names, subject)
    return WrittenNode(node, (OpCall(forward, *meanings),), (OpCall(backward),))


def meanings_of(
    derivation: PairDerivation, names: Renaming, subject: Subject
) -> tuple[tuple[Meaning, ...], tuple[Meaning, ...]]:
    """The settings and the functions of a derivation, by other symbols."""
    symbols = [
        replace(
            each,
            symbol=renamed(each.symbol, names),
            definition=each.definition and renamed(each.definition, names),
            value=each.value
            if subject.options.get(each.name) is None
            else subject.options[each.name],
        )
        for each in derivation.symbols
    ]
    settings = tuple(each for each in symbols if each.shape is None and not each.words)
    return settings, tuple(each for each in symbols if each.words)


def rewritten(
    equation: DerivedEquation, names: Renaming, of_gradients: Renaming | None = None
) -> DerivedEquation:
    """An equation with other symbols; those that a gradient is of may go by others again."""

    def changed(formula: Formula) -> Formula:
        if of_gradients is None:
            return renamed(formula, names)
        found = filter(is_gradient, parts_in(formula))
        gradients = {each: renamed(each, of_gradients) for each in found}
        return renamed(formula, {**names, **gradients})

    return replace(
        equation,
        left=changed(equation.left),
        right=changed(equation.right),
        parts=tuple((changed(each), value) for each, value in equation.parts),
        loop=equation.loop and changed(equation.loop),
        here=equation.here and rewritten(equation.here, names, of_gradients),
        step=equation.step and changed(equation.step),
        arrived=tuple(
            replace(
                each,
                symbol=changed(each.symbol),
                parts=tuple((changed(symbol), value) for symbol, value in each.parts),
            )
            for each in equation.arrived
        ),
    )


def without_identity(equations: Iterable[DerivedEquation]) -> tuple[DerivedEquation, ...]:
    """The equations with h = … in the place of a = … and h = identity(a)."""
    found: list[DerivedEquation] = []
    identity = activation_operator("identity")
    for each in equations:
        if found and each.right == row(identity, Fenced(found[-1].left)):
            each = replace(found.pop(), name=each.name, left=each.left, parts=each.parts)
        found.append(each)
    return tuple(found)


def activation_step(activation: str, options: Mapping[str, Any], lang: str) -> WrittenNode:
    """The activation of fused layers as a function of a, and ∂L/∂a, where h is its value."""
    op = import_module(f"handgrad.ops.{activation}")
    x = np.linspace(-2.0, 2.5, 6).reshape(2, 3)
    forward, backward = inspect.unwrap(op.forward), inspect.unwrap(op.backward)
    subject = Subject(activation, forward, backward, {"x": x}, options, x + 0.25, ("x",))
    derivation = derive(subject, lang)
    a, function = Symbol("a"), activation_operator(activation)
    names: dict[Formula, Formula] = {
        gradient_of(Symbol("y")): gradient_of(Symbol("h")),
        Symbol("y"): row(function, Fenced(a)),
        Symbol("x"): a,
    }
    return step_of(None, derivation, names, subject)
