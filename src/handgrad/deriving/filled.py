"""Arrays that are written part by part, or added to."""

from __future__ import annotations

from collections.abc import Sequence

from handgrad.deriving.indexed import Writing, at_index, ends_of, index_of
from handgrad.documents.formulas.formula import (
    Cases,
    Fenced,
    Formula,
    Sign,
    Text,
    parts_in,
    row,
    separated,
)
from handgrad.equations.parts import ATOM, CONDITION, PRODUCT, SUM, Part
from handgrad.program.node import Node
from handgrad.program.sizes import Size


def changed(writer: Writing, node: Node, symbol: Formula) -> Formula:
    """A part of an array that rounds fill or add to, as an equation."""
    x, value, *arrays = node.args
    index = index_of(writer, x, node.attrs["index"], arrays)
    part = at_index(Part(symbol, ATOM), index).formula
    if node.op == "add_at":
        return row(part, Sign("←"), part, *_added(writer, value))
    new = writer.of(value)
    return row(part, Sign("←" if part in parts_in(new) else "="), new)


def _added(writer: Writing, value: Node) -> tuple[Formula, Formula]:
    """The sign and what follows it."""
    if value.op == "negative" and value not in writer.symbols:
        return Sign("−"), writer.of(value.args[0], PRODUCT)
    return Sign("+"), writer.of(value, SUM)


def stored(writer: Writing, node: Node) -> Part:
    """An array with the parts that were written, or added to, by their places.

    Zeros whose parts along one axis are all written, each once, are these side by side.
    """
    pieces = [node]
    base = node.args[0]
    while base.op in ("store", "add_at") and base not in writer.symbols:
        if not all(_is_apart(base, piece) for piece in pieces):
            break
        pieces.append(base)
        base = base.args[0]
    if base.op == "zeros" and (joined := _side_by_side(writer, pieces)) is not None:
        return joined
    rows: list[tuple[Formula, Formula]] = []
    for piece in pieces:
        x, value, *arrays = piece.args
        new = writer.of(value)
        index = index_of(writer, x, piece.attrs["index"], arrays)
        if piece.op == "add_at" and base.op != "zeros":
            new = row(at_index(writer.part(base), index).formula, *_added(writer, value))
        rows.append((new, row(Text("at "), Fenced(index, "["))))
    return Part(Cases((*rows, (writer.of(base), Text("otherwise")))), CONDITION)


def _is_apart(one: Node, other: Node) -> bool:
    """True for two changes of which no place is the same, whatever the lengths are."""
    for axis, (a, b) in enumerate(zip(one.attrs["index"], other.attrs["index"], strict=False)):
        if isinstance(a, Size) and isinstance(b, Size):
            if (a - b).constant:
                return True
        elif _is_plain(a) and _is_plain(b):
            length = Size.of(one.shape[axis])
            (start, stop), (first, end) = ends_of(a, length), ends_of(b, length)
            if _is_no_less(first, stop) or _is_no_less(start, end):
                return True
        else:
            return False
    return False


def _is_plain(part: object) -> bool:
    return isinstance(part, slice) and part.step in (None, 1)


def _is_no_less(one: Size, other: Size) -> bool:
    return all(coefficient >= 0 for _, coefficient in (one - other).terms)


def _side_by_side(writer: Writing, pieces: Sequence[Node]) -> Part | None:
    """Parts that make up an axis, in its order; None where they do not."""
    found: dict[tuple[int, Size], tuple[Size, Node]] = {}
    for piece in pieces:
        index = piece.attrs["index"]
        places = [axis for axis, part in enumerate(index) if part != slice(None)]
        if len(places) != 1 or not all(map(_is_plain, index)):
            return None
        (axis,) = places
        start, stop = ends_of(index[axis], Size.of(piece.shape[axis]))
        found[axis, start] = stop, piece.args[1]
    axes = {axis for axis, _ in found}
    if len(axes) != 1 or len(found) < 2:
        return None
    (axis,) = axes
    values: list[Formula] = []
    place = Size.of(0)
    while (axis, place) in found:
        place, value = found.pop((axis, place))
        values.append(writer.of(value))
    if found or place != Size.of(pieces[0].shape[axis]):
        return None
    sign = "∣" if axis == pieces[0].ndim - 1 else ";"
    return Part(Fenced(separated(tuple(values), sign), "["), ATOM)
