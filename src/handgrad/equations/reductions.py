"""Sums, means and maxima over axes, and products that sum over the rows of several axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from handgrad.documents.formulas.formula import (
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
from handgrad.equations import families, indexing
from handgrad.equations.parts import (
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
from handgrad.equations.shaping import Subscripts, len_of, number, shape
from handgrad.equations.shaping import argument as given
from handgrad.equations.writes import Writes
from handgrad.program import Node
from handgrad.program.arranging import is_transpose
from handgrad.program.sizes import ONE


def reduced(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    found = families.reduced(writer, node, _axes(node)) or _over_rows(writer, node)
    if found is not None:
        return found
    value = node.args[0]
    axes, sizes = _axes(node), shape(value)
    outer = _outer_marks(node, axes, len(sizes), subscripts)
    if node.op == "sum" and all(sizes[axis] == ONE for axis in axes):
        return writer.part(value, outer)
    inner = list(outer)
    taken = [subscript.name for subscript in subscripts if isinstance(subscript, Symbol)]
    for axis in axes:
        inner[axis] = writer.letter(sizes[axis], taken)
    indices = tuple(subscript for axis in axes if (subscript := inner[axis]) is not None)
    strength = BIG if node.op in ("sum", "mean") else CONDITION
    body = writer.write(value, strength, tuple(inner))
    lengths = [writer.scope.dimensions.size(sizes[axis]) for axis in axes]
    if node.op not in ("sum", "mean"):
        return Part(Big(node.op, argument(body), separated(indices)), UNARY)
    below, above = separated(indices) if indices else None, None
    if len(indices) == 1:
        below, above = equals(indices[0], Number("1")), lengths[0]
    total = Big("sum", body, below, above)
    if node.op == "sum":
        return Part(total, BIG)
    count = juxtaposed(lengths)
    if all(isinstance(size, Number) for size in lengths):
        count = Number(str(math.prod(len_of(value, axis) for axis in axes)))
    return Part(row(Fraction(Number("1"), count), total), BIG)


def _axes(node: Node) -> tuple[int, ...]:
    """The axes that are summed over, counted from the first."""
    count = len(shape(node.args[0]))
    axis = given(node, 1, "axis", "dim")
    if axis is None:
        return tuple(range(count))
    several = tuple(map(number, axis)) if isinstance(axis, tuple | list) else (number(axis),)
    return tuple(sorted(each % max(count, 1) for each in several))


def _outer_marks(
    node: Node, axes: tuple[int, ...], count: int, subscripts: Subscripts
) -> Subscripts:
    """The subscripts that a reduction's result has, as subscripts of what is reduced."""
    kept = len(shape(node)) == count
    left = list(subscripts) if subscripts else [None] * len(shape(node))
    if kept:
        return tuple(left)
    return tuple(None if axis in axes else (left.pop(0) if left else None) for axis in range(count))


# The rows of several sequences or steps, one below the other


def _over_rows(writer: Writes, node: Node) -> Part | None:
    """Σ_t Σ_n x_n,t, where the steps t of all sequences n are rows of one matrix."""
    found = _rows(writer, node.args[0])
    if found is None or node.op != "sum" or _axes(node) != (0,):
        return None
    array, axis = found
    sizes = shape(array)
    taken: list[str] = []
    step = _index(writer, array, axis, taken)
    other = writer.letter(sizes[1 - axis], taken)
    inner = (step, other) if axis == 0 else (other, step)
    body = writer.write(array, BIG, (*inner, None))
    size = writer.scope.dimensions.size
    within = Big("sum", body, equals(other, Number("1")), size(sizes[1 - axis]))
    return Part(Big("sum", within, equals(step, Number("1")), size(sizes[axis])), BIG)


def over_rows(writer: Writes, left: Any, right: Any) -> Part | None:
    """Σ_t a_tᵀ x_t, where the steps t of all sequences are the rows of both matrices."""
    found = summed_rows(writer, left, right)
    if found is None:
        return None
    first, second, axis = found
    if writer.figures is not None:
        return _figures(writer, first.value, second.value, axis)
    step = _index(writer, first, axis, [])
    subscripts: Subscripts = (step, None, None) if axis == 0 else (None, step, None)
    turned = power(writer.part(first, subscripts), Sign("⊤")).formula
    body = juxtaposed([turned, writer.write(second, PRODUCT, subscripts)])
    size = writer.scope.dimensions.size(shape(first)[axis])
    return Part(Big("sum", body, equals(step, Number("1")), size), BIG)


def summed_rows(writer: Writes, left: Any, right: Any) -> tuple[Node, Node, int] | None:
    """The two arrays of three axes whose rows a product sums over, and the axis to sum over in
    writing; None for any other product."""
    if not is_transpose(left) or writer.has_symbol(left):
        return None
    one, other = _rows(writer, left.args[0]), _rows(writer, right)
    if one is None or other is None or shape(one[0])[:2] != shape(other[0])[:2]:
        return None
    return one[0], other[0], one[1]


def _figures(writer: Writes, first: Any, second: Any, axis: int) -> Part:
    """The terms of that sum with their matrices."""
    assert writer.figures is not None
    terms: list[Formula] = []
    for step in range(first.shape[axis]):
        left, right = (np.take(each, step, axis) for each in (first, second))
        sign = [Sign("+")] if terms else []
        terms += [*sign, juxtaposed([writer.figures(left.T), writer.figures(right)])]
    return Part(row(*terms), SUM)


def _rows(writer: Writes, node: Any) -> tuple[Node, int] | None:
    """The array of three axes whose first two are the rows of this matrix, and the axis to sum
    over: that of the steps, or the first."""
    inner = writer.bare(node)
    sizes, own = shape(node), shape(inner)
    if len(sizes) != 2 or len(own) != 3 or own[:2] == (ONE, ONE) or own[2] != sizes[1]:
        return None
    if own[0] * own[1] != sizes[0]:
        return None
    return inner, 1 if indexing.has_steps(writer, inner, -2) else 0


def _index(writer: Writes, array: Node, axis: int, taken: list[str]) -> Formula:
    """The counter of the loop over the steps, or a letter of its own."""
    loops = list(writer.scope.loops.values())
    if indexing.has_steps(writer, array, axis - 3) and loops:
        return writer.scope.counter(loops[0])
    return writer.letter(shape(array)[axis], taken)
