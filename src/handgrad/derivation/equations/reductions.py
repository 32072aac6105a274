"""Sums, means and maxima over axes, and products that sum over the rows of several axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from handgrad.derivation.equations import marks as marking
from handgrad.derivation.equations.marks import Marks
from handgrad.derivation.equations.parts import (
    BIG,
    CONDITION,
    PRODUCT,
    SUM,
    UNARY,
    Part,
    argument,
    juxtaposed,
    power,
)
from handgrad.derivation.formulas.formula import (
    Big,
    Formula,
    Fraction,
    Number,
    Sign,
    Symbol,
    equals,
    row,
    separated,
)
from handgrad.trees import nodes
from handgrad.trees.nodes import Node

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer


def reduced(writer: Writer, node: nodes.Reduce, marks: Marks) -> Part:
    found = _over_family(writer, node) or _over_rows(writer, node)
    if found is not None:
        return found
    axes = _axes(writer, node)
    shape = writer.shape(node.value)
    outer = _outer_marks(writer, node, axes, len(shape), marks)
    inner = list(outer)
    taken = [mark.name for mark in marks if isinstance(mark, Symbol)]
    for axis in axes:
        inner[axis] = marking.letter(writer, shape[axis], taken)
    indices = tuple(mark for axis in axes if (mark := inner[axis]) is not None)
    strength = BIG if node.kind in ("sum", "mean") else CONDITION
    body = writer.write(node.value, strength, tuple(inner))
    if node.kind == "sum" and all(shape[axis] == 1 for axis in axes):
        return writer.part(node.value, outer)
    sizes = [writer.frame.dimensions.size(shape[axis]) for axis in axes]
    if node.kind not in ("sum", "mean"):
        return Part(Big(node.kind, argument(body), separated(indices)), UNARY)
    below, above = separated(indices) if indices else None, None
    if len(indices) == 1:
        below, above = equals(indices[0], Number("1")), sizes[0]
    total = Big("sum", body, below, above)
    if node.kind == "sum":
        return Part(total, BIG)
    count = juxtaposed(sizes)
    if all(isinstance(size, Number) for size in sizes):
        count = Number(str(math.prod(shape[axis] for axis in axes)))
    return Part(row(Fraction(Number("1"), count), total), BIG)


def _over_family(writer: Writer, node: nodes.Reduce) -> Part | None:
    """A maximum along the axis on which a loop's arrays were stacked: max_τ V_τ."""
    match writer.bare(node.value):
        case nodes.Name(name) if (found := writer.family(name)) is not None:
            element, index = found
            _, axis = writer.frame.families[name]
            shape = writer.shape(node.value)
            if axis is not None and _axes(writer, node) == (axis % max(len(shape), 1),):
                return Part(Big(node.kind, element, index), BIG)
    return None


def _axes(writer: Writer, node: nodes.Reduce) -> tuple[int, ...]:
    """The axes that are summed over, counted from the first."""
    count = len(writer.shape(node.value))
    given = [each.value for each in node.keywords if each.name in ("axis", "dim")]
    given += node.arguments[:1]
    axis = writer.value(given[0]) if given else None
    if axis is None:
        return tuple(range(count))
    several = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(sorted(each % max(count, 1) for each in several))


def _outer_marks(
    writer: Writer, node: nodes.Reduce, axes: tuple[int, ...], count: int, marks: Marks
) -> Marks:
    """The marks that a reduction's result has, as marks of what is reduced."""
    kept = len(writer.shape(node)) == count
    left = list(marks) if marks else [None] * len(writer.shape(node))
    if kept:
        return tuple(left)
    return tuple(None if axis in axes else (left.pop(0) if left else None) for axis in range(count))


# The rows of several sequences or steps, one below the other


def _over_rows(writer: Writer, node: nodes.Reduce) -> Part | None:
    """Σ_t Σ_n x_n,t, where the steps t of all sequences n are rows of one matrix."""
    found = _rows(writer, node.value)
    if found is None or node.kind != "sum" or _axes(writer, node) != (0,):
        return None
    array, axis = found
    shape = writer.shape(array)
    taken: list[str] = []
    step = _index(writer, array, axis, taken)
    other = marking.letter(writer, shape[1 - axis], taken)
    inner = (step, other) if axis == 0 else (other, step)
    body = writer.write(array, BIG, (*inner, None))
    size = writer.frame.dimensions.size
    within = Big("sum", body, equals(other, Number("1")), size(shape[1 - axis]))
    return Part(Big("sum", within, equals(step, Number("1")), size(shape[axis])), BIG)


def over_rows(writer: Writer, left: Node, right: Node) -> Part | None:
    """Σ_t a_tᵀ x_t, where the steps t of all sequences are the rows of both matrices."""
    found = summed_rows(writer, left, right)
    if found is None:
        return None
    first, second, axis = found
    if writer.figures is not None:
        return _figures(writer, writer.value(first), writer.value(second), axis)
    step = _index(writer, first, axis, [])
    marks: Marks = (step, None, None) if axis == 0 else (None, step, None)
    turned = power(writer.part(first, marks), Sign("⊤")).formula
    body = juxtaposed([turned, writer.write(second, PRODUCT, marks)])
    size = writer.frame.dimensions.size(writer.shape(first)[axis])
    return Part(Big("sum", body, equals(step, Number("1")), size), BIG)


def summed_rows(writer: Writer, left: Node, right: Node) -> tuple[Node, Node, int] | None:
    """The two arrays of three axes whose rows a product sums over, and the axis to sum over in
    writing; None for any other product."""
    if not isinstance(left, nodes.Transpose):
        return None
    one, other = _rows(writer, left.value), _rows(writer, right)
    if one is None or other is None or writer.shape(one[0])[:2] != writer.shape(other[0])[:2]:
        return None
    return one[0], other[0], one[1]


def _figures(writer: Writer, first: Any, second: Any, axis: int) -> Part:
    """The terms of that sum with their matrices."""
    assert writer.figures is not None
    terms: list[Formula] = []
    for step in range(first.shape[axis]):
        left, right = (np.take(each, step, axis) for each in (first, second))
        sign = [Sign("+")] if terms else []
        terms += [*sign, juxtaposed([writer.figures(left.T), writer.figures(right)])]
    return Part(row(*terms), SUM)


def _rows(writer: Writer, node: Node) -> tuple[Node, int] | None:
    """The array of three axes whose first two are the rows of this matrix, and the axis to sum
    over: that of the steps, or the first."""
    shape = writer.shape(node)
    inner = writer.bare(node)
    own = writer.shape(inner)
    if len(shape) != 2 or len(own) != 3 or own[:2] == (1, 1) or own[2] != shape[1]:
        return None
    if own[0] * own[1] != shape[0]:
        return None
    return inner, 1 if writer.has_steps(inner, -2) else 0


def _index(writer: Writer, array: Node, axis: int, taken: list[str]) -> Formula:
    """The counter of the loop over the steps, or a letter of its own."""
    counters = list(writer.frame.counters.values())
    if writer.has_steps(array, axis - 3) and counters:
        return counters[0]
    return marking.letter(writer, writer.shape(array)[axis], taken)
