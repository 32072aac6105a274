"""The notation of functions that ops share: windows, and activations at the end of an op."""

from __future__ import annotations

from typing import Any

from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Number,
    Operator,
    Script,
    Sign,
    Symbol,
    row,
    separated,
)
from handgrad.equations.parts import (
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
from handgrad.equations.shaping import Subscripts, carried, number, subscript_of
from handgrad.equations.words import by_name, explain
from handgrad.equations.writes import Writes
from handgrad.program import Node


def _moves(writer: Writes, offset: Any, stride: Any, dilation: Any) -> Formula:
    """m d :: s for every axis of the kernel's offset."""
    if isinstance(offset, Node) and isinstance(offset.value, tuple):
        stride, dilation = (
            each[0] if isinstance(each, tuple | list) else each for each in (stride, dilation)
        )
    offsets = offset if isinstance(offset, tuple) else (offset,)
    parts: list[Formula] = []
    for axis, place in enumerate(offsets):
        step, wide = (
            each[axis] if isinstance(each, tuple | list) else each for each in (stride, dilation)
        )
        if type(place) is int and place == 0 and type(step) is int and step == 1:
            parts.append(Sign(":"))
            continue
        start = [_offset(writer, place)]
        if not (type(wide) is int and wide == 1):
            start.append(writer.write(wide, UNARY))
        end = () if type(step) is int and step == 1 else (writer.write(step, UNARY),)
        parts.append(row(juxtaposed(start), Sign(":"), Sign(":"), *end))
    return separated(tuple(parts))


def _offset(writer: Writes, place: Any) -> Formula:
    return place if not isinstance(place, Node | int) else writer.write(place, UNARY)


def window(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    values, offset, stride, dilation = node.args[:4]
    places = _moves(writer, offset, stride, dilation)
    outer = subscript_of(carried(node, subscripts))
    index = places if outer is None else row(outer, Sign(","), places)
    return subscripted(writer.part(values), index)


def scatter(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """(x)_→ m d :: s, laid there where V_m d :: s would take it from."""
    values, offset, stride, dilation = node.args[:4]
    below = row(Sign("→"), _moves(writer, offset, stride, dilation))
    explain(writer, node, Script(Fenced(Sign("·")), row(Sign("→"), Sign("⋯"))))
    return Part(Script(Fenced(writer.write(values)), below), ATOM)


def padded(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """pad_p(x), with the value around it unless that is 0; pad_−p(x) takes it away again."""
    values, padding, *value = node.args
    width = _once(writer, padding)
    word: Formula = Operator("pad")
    if node.op == "crop":
        width = row(Sign("−"), width)
    explain(writer, node, Script(word, width))
    inside = writer.write(values, SUM)
    if value and (around := number(value[0])) != 0:
        inside = separated((inside, constant(around).formula))
    return Part(row(Script(word, width), Fenced(inside)), UNARY)


def _once(writer: Writes, setting: Any) -> Formula:
    """A setting that is alike for every axis, written once."""
    several = setting if isinstance(setting, tuple | list) else (setting,)
    written = tuple(dict.fromkeys(map(writer.write, several)))
    return written[0] if len(written) == 1 else Fenced(separated(written))


def window_sum(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """Σ over the offsets of a window."""
    values, _, stride = node.args[:3]
    index = _moves(writer, (Symbol("m"), Symbol("n")), stride, 1)
    value = writer.part(values)
    base = Fenced(value.formula) if value.strength < UNARY else value.formula
    below = separated((Symbol("m"), Symbol("n")))
    return Part(Big("sum", subscripted(Part(base, ATOM), index).formula, below), BIG)


def activation_gradient(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """∂L/∂h ⊙ f′(a)."""
    dh, a = node.args[:2]
    slope = Script(Symbol("f"), sup=Sign("′"))
    explain(writer, node, slope)
    derivative = row(slope, Fenced(writer.write(a, CONDITION, subscripts)))
    return Part(row(writer.write(dh, PRODUCT, subscripts), Sign("⊙"), derivative), PRODUCT)


def summed_to(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """Σ over the axes along which an operand was broadcast."""
    gradient, operand = node.args[:2]
    word = Script(by_name(writer, node), writer.write(operand))
    return Part(row(word, Fenced(writer.write(gradient))), UNARY)


def drawn(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """A random mask, 1 with the probability 1 − p."""
    numbers = tuple(
        row(Number("1"), Sign("−"), writer.write(each, PRODUCT))
        for each in node.args
        if isinstance(number(each), float)
    )
    word = by_name(writer, node)
    return Part(row(word, Fenced(separated(numbers) if numbers else row())), UNARY)
