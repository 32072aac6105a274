"""How the functions are written that ops share: windows, and activations at the end of an op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from handgrad.derivation.equations.functions import by_name, explain
from handgrad.derivation.equations.marks import carried, marked
from handgrad.derivation.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    PRODUCT,
    SUM,
    UNARY,
    Part,
    constant,
    juxtaposed,
    subscripted,
)
from handgrad.derivation.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Script,
    Sign,
    Symbol,
    row,
    separated,
)
from handgrad.trees import nodes
from handgrad.trees.nodes import Node

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer
    from handgrad.derivation.equations.marks import Marks


def _moves(writer: Writer, tap: Node, stride: Node, dilation: Node) -> Formula:
    """m d :: s for every axis of the tap."""
    taps = tap.items if isinstance(tap, nodes.Sequence) else (tap,)
    parts: list[Formula] = []
    for axis, place in enumerate(taps):
        step, wide = (
            each.items[axis] if isinstance(each, nodes.Sequence) else each
            for each in (stride, dilation)
        )
        single = step == nodes.Constant(1)
        if place == nodes.Constant(0) and single:
            parts.append(Sign(":"))
            continue
        start = [writer.write(place, UNARY)]
        if wide != nodes.Constant(1):
            start.append(writer.write(wide, UNARY))
        end = () if single else (writer.write(step, UNARY),)
        parts.append(row(juxtaposed(start), Sign(":"), Sign(":"), *end))
    return separated(tuple(parts))


def window(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    values, tap, stride, dilation = node.arguments[:4]
    places = _moves(writer, tap, stride, dilation)
    outer = marked(carried(writer, node, marks))
    index = places if outer is None else row(outer, Sign(","), places)
    return subscripted(writer.part(values), index)


def scatter(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    values, tap, stride, dilation = node.arguments[:4]
    word = by_name(writer, node)
    below = _moves(writer, tap, stride, dilation)
    return Part(row(Script(word, below), Fenced(writer.write(values))), UNARY)


def padded(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """pad_p(x), with the value that stands around it unless that is 0."""
    word = by_name(writer, node)
    values, padding, *value = node.arguments
    inside = writer.write(values, SUM)
    if value and (around := writer.value(value[0])) != 0:
        inside = separated((inside, constant(around).formula))
    return Part(row(Script(word, writer.write(padding)), Fenced(inside)), UNARY)


def window_sum(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """Σ over the taps of a window."""
    values, _, stride = node.arguments[:3]
    taps = nodes.Sequence("tuple", (nodes.Name("m"), nodes.Name("n")))
    places = replace_bound(writer, ("m", "n"))
    index = _moves(places, taps, stride, nodes.Constant(1))
    value = writer.part(values)
    base = Fenced(value.formula) if value.strength < UNARY else value.formula
    below = separated((Symbol("m"), Symbol("n")))
    return Part(Big("sum", subscripted(Part(base, ATOM), index).formula, below), BIG)


def replace_bound(writer: Writer, letters: Sequence[str]) -> Writer:
    """The writer inside a loop over these letters."""

    return replace(writer, bound={**writer.bound, **{each: Symbol(each) for each in letters}})


def activation_gradient(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """∂L/∂h ⊙ f′(a)."""
    dh, a = node.arguments[:2]
    slope = Script(Symbol("f"), sup=Sign("′"))
    explain(writer, node.function, slope)
    derivative = row(slope, Fenced(writer.write(a, CONDITION, marks)))
    return Part(row(writer.write(dh, PRODUCT, marks), Sign("⊙"), derivative), PRODUCT)


def summed_to(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """Σ over the axes along which an operand was broadcast."""
    word = by_name(writer, node)
    gradient, operand = node.arguments[:2]
    below = writer.write(operand)
    return Part(row(Script(word, below), Fenced(writer.write(gradient))), UNARY)


def drawn(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """A random mask: with which probability."""
    word = by_name(writer, node)
    numbers = [
        writer.write(each)
        for each in node.arguments
        if isinstance(writer.value(each), float) and not isinstance(writer.value(each), bool)
    ]
    return Part(row(word, Fenced(separated(tuple(numbers)) if numbers else row())), UNARY)
