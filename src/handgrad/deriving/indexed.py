"""Values by their indices: contractions, selections, and what is written into a part."""

from __future__ import annotations

from typing import Any, Protocol

from handgrad.deriving.symbols import NodeSymbols
from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    FormulaRow,
    Number,
    Script,
    Sign,
    Space,
    Symbol,
    row,
    separated,
)
from handgrad.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    PRODUCT,
    UNARY,
    Part,
    fenced,
    is_condition,
    power,
    subscripted,
)
from handgrad.program.node import Node
from handgrad.program.primitives.index import Slot
from handgrad.program.sizes import Size


class Writing(Protocol):
    """A writer of operands; those that have `symbols` are written by them."""

    symbols: NodeSymbols

    def of(self, node: Node, strength: int = CONDITION) -> Formula: ...

    def part(self, node: Node) -> Part: ...

    def outside(self, node: Node) -> Node: ...

    def size(self, size: Size | int) -> Part: ...


def beside(left: Formula, right: Formula) -> Formula:
    """Two factors with room between them, so that an adjoint is told from a product with d."""
    between = Sign("·") if isinstance(right, Number) else Space()
    return row(left, between, right)


def contracted(writer: Writing, node: Node) -> Part:
    """A B with transposes where it is a matrix product, else a sum over indices."""
    left, right, out = (tuple(node.attrs[side]) for side in ("left", "right", "out"))
    first, second = node.args
    inner = [index for index in left if index in right and index not in out]
    is_matrix = len(inner) == 1 and min(len(left), len(right)) >= 2
    if is_matrix and left[:-2] == right[:-2] == out[:-2] and len(left) == len(right) == len(out):
        (k,) = inner
        if out[-2] in right and out[-1] in left:
            first, second, left, right = second, first, right, left
        if out[-2] in left and out[-1] in right:
            factors = [
                _turned(writer, first, left[-2] == k),
                _turned(writer, second, right[-1] == k),
            ]
            return Part(beside(*factors), PRODUCT)
    order = dict.fromkeys((*out, *left, *right))
    names = dict(zip(order, writer.symbols.indices, strict=False))
    factors = [
        at_index(writer.part(each), separated(tuple(names[index] for index in indices))).formula
        for each, indices in ((first, left), (second, right))
    ]
    summed = tuple(names[index] for index in names if index not in out)
    body = beside(*factors)
    return Part(Big("sum", body, separated(summed)), BIG) if summed else Part(body, PRODUCT)


def _turned(writer: Writing, node: Node, turned: bool) -> Formula:
    return turned_over(writer, node).formula if turned else writer.of(node, UNARY)


def is_turned(node: Node) -> bool:
    """True for a transpose of the last two axes."""
    axes = tuple(node.attrs.get("axes", (1, 0)))
    last = len(axes) - 1
    return node.op == "transpose" and axes == (*range(last - 1), last, last - 1)


def turned_over(writer: Writing, node: Node) -> Part:
    """xᵀ, and x where that is one already."""
    if is_turned(node) and node not in writer.symbols:
        return writer.part(node.args[0])
    return power(writer.part(node), Sign("⊤"))


def selected(writer: Writing, node: Node) -> Part:
    """x with its index below it."""
    x, *arrays = node.args
    index = node.attrs["index"]
    turned = writer.outside(x)
    if turned.op == "transpose" and x not in writer.symbols and len(index) == 1:
        first, *others = turned.attrs["axes"]
        if others == sorted(others) and isinstance(index[0], Size):
            # The order of the axes that are left is as before.
            x, index = turned.args[0], (*[slice(None)] * first, index[0])
    return at_index(writer.part(x), index_of(writer, x, index, arrays))


def at_index(x: Part, index: Formula) -> Part:
    """A value with an index; that of dx stands below x."""
    match x.formula:
        case FormulaRow((Symbol("d") as d, of)):
            return Part(row(d, at_index(Part(of, ATOM), index).formula), ATOM)
        case Script(Fenced(_, "⟨"), _, None) | Script(_, Fenced(), None):
            # Below it stand the axes of a mean, or a shape.
            x = Part(Fenced(x.formula), ATOM)
    if is_condition(x.formula):
        x = Part(fenced(*x), ATOM)
    return subscripted(x, index)


def index_of(writer: Writing, x: Node, index: tuple[Any, ...], arrays: list[Node]) -> Formula:
    """An index of an array: of a slice the first and the last position, counted from 0.

    Of a place that changes from round to round, alone among whole axes, the place: x_t.
    """
    found: list[Formula] = []
    places = [part for part in index if part != slice(None)]
    if len(places) == 1 and isinstance(places[0], Size) and writer.symbols.counts(places[0]):
        return writer.size(places[0]).formula
    axis = 0
    for part in index:
        if isinstance(part, Slot):
            found.append(writer.of(arrays[part.at]))
            axis += arrays[part.at].ndim if arrays[part.at].kind == "b" else 1
        elif isinstance(part, slice):
            found.append(_span(writer, part, Size.of(x.shape[axis])))
            axis += 1
        else:
            found.append(Sign("∗") if part is None else writer.size(part).formula)
            axis += part is not None
    return separated(tuple(found))


def ends_of(part: slice, length: Size) -> tuple[Size, Size]:
    """The first position of a slice forwards, and the one after its last."""
    start = Size.of(0) if part.start is None else _from_front(part.start, length)
    return start, length if part.stop is None else _from_front(part.stop, length)


def _span(writer: Writing, part: slice, length: Size) -> Formula:
    step = 1 if part.step is None else Size.of(part.step).constant
    if (part.start, part.stop, step) == (None, None, 1):
        return Sign(":")
    is_back = step is not None and step < 0
    first, last = (length - 1, Size.of(0)) if is_back else (Size.of(0), length - 1)
    if part.start is not None:
        first = _from_front(part.start, length)
    if part.stop is not None:
        last = _from_front(part.stop, length) + (1 if is_back else -1)
    between = [] if step == 1 else [writer.size(first + (part.step or 1)).formula, Sign("⋯")]
    return row(writer.size(first).formula, Sign("⋯"), *between, writer.size(last).formula)


def _from_front(end: Any, length: Size) -> Size:
    end = Size.of(end)
    return length + end if end.constant is not None and end.constant < 0 else end
