"""The notation of axes and indices as the code has them, for what stands between ops.

It is short, so that every operation on the shape of an array is written: axes are counted from 0,
positions too, from the end where negative. Signs between arrays broadcast as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Number,
    Operator,
    Script,
    Sign,
    Symbol,
    Text,
    equals,
    row,
    separated,
)
from handgrad.equations import notations
from handgrad.equations.indexing import places
from handgrad.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    SUM,
    UNARY,
    Part,
    fenced,
    power,
    subscripted,
)
from handgrad.equations.shaping import (
    SHAPING,
    UNFILLED,
    argument,
    only_new_axes,
    positions,
    shape,
)
from handgrad.equations.words import by_name
from handgrad.equations.writes import Writes
from handgrad.program import Node, ProgramError
from handgrad.program.arranging import ORDERS, RESHAPING, is_transpose, turned

#: Operations that only say where values stand.
ARRANGING: Final = SHAPING | ORDERS.keys() | {"getitem"}
#: Of these, those whose result has the same values in the same shape.
_SAME: Final = frozenset({"asarray", "astype", "copy", "require", "positive", "float"})
_FILLED: Final = {"zeros": "0", "zeros_like": "0", "ones": "1", "ones_like": "1"}
#: The axes of what rows and columns have together.
_TABLE: Final = 2
#: Operations whose result does not depend on the values of their operand.
CONSTANT: Final = frozenset(_FILLED) | UNFILLED


def written(writer: Writes, node: Node) -> Part | None:
    """A node whose axes or positions are to be said; None for any other."""
    if _only_reshapes(node):
        return _reshaped(writer, node)
    found = _NOTATIONS.get(node.op)
    return None if found is None else found(writer, node)


def called(writer: Writes, node: Node) -> Part:
    """name_1(a, b) with its settings below it, unless there is a sign for it."""
    if node.op in notations.ELEMENTWISE:
        return notations.ELEMENTWISE[node.op](writer, node, ())
    if not all(map(_is_setting, (*node.args, *node.kwargs.values()))):
        raise ProgramError(f"notes: {node.op} takes an object that is no array")
    inside = separated(tuple(writer.write(each, SUM) for each in node.args))
    below = tuple(
        writer.write(value, SUM)
        for value in node.kwargs.values()
        if value is not None and not isinstance(value, type | np.dtype)
    )
    name = by_name(writer, node)
    return Part(row(Script(name, separated(below)) if below else name, Fenced(inside)), UNARY)


# Shapes


def _only_reshapes(node: Node) -> bool:
    """True where the values stay in their order."""
    if node.op == "getitem":
        return only_new_axes(node.args[1])
    return node.op in RESHAPING or (node.op in _SAME and isinstance(node.args[0], Node))


def _reshaped(writer: Writes, node: Node) -> Part:
    """One reshape for several, and none where the shape is the old one again."""
    inner: Any = node
    while isinstance(inner, Node) and not writer.has_symbol(inner) and _only_reshapes(inner):
        inner = inner.args[0]
    if np.shape(inner.value) == np.shape(node.value):
        return writer.part(inner)
    return _in_shape(writer, node, writer.write(inner))


def _broadcast(writer: Writes, node: Node) -> Part:
    return _in_shape(writer, node, writer.write(node.args[0]))


def _in_shape(writer: Writes, node: Node, inside: Formula) -> Part:
    """(x)_(N, 1, D): the values in this shape, repeated where they are fewer, as in 0_(N, D)."""
    below = writer.scope.dimensions.shape(shape(node))
    symbol = shaped(Sign("·"), Fenced(Sign("⋯")))
    writer.scope.helpers.setdefault(
        "reshape", (symbol, "The values in this shape, repeated where they are fewer.")
    )
    return Part(shaped(inside, below), ATOM)


def shaped(inside: Formula, shape_of_it: Formula) -> Formula:
    if not isinstance(inside, Symbol | Fenced):
        inside = fenced(inside, CONDITION)
    return Script(inside, shape_of_it)


def _filled(writer: Writes, node: Node) -> Part:
    value = Number(_FILLED[node.op])
    return Part(Script(value, writer.scope.dimensions.shape(shape(node))), ATOM)


def _counted(writer: Writes, node: Node) -> Part:
    """(0, 1, 2), or (0, 1, …, 63) where it goes up by one."""
    values = np.asarray(node.value)
    if len(values) >= notations.FEWEST and values[1] - values[0] != 1:
        return called(writer, node)
    return Part(notations.listed(values.tolist()), ATOM)


def _turned(writer: Writes, node: Node) -> Part:
    value, order = node.args[0], turned(node)
    if order is None:
        return called(writer, node)
    if is_transpose(node):
        return power(writer.part(value), Sign("⊤"))
    axes = separated(tuple(Number(str(each)) for each in order))
    writer.scope.helpers.setdefault(
        "transpose", (Script(Sign("⊤"), Sign("⋯")), "The axes in this order, counted from 0.")
    )
    return power(writer.part(value), Script(Sign("⊤"), axes))


# Positions


def _item(writer: Writes, node: Node) -> Part:
    """x_[1⋯6, :]; where only axes are added, the shape says it."""
    value, index = node.args
    kept = tuple(each for each in positions(index) if each is not None)
    inside = Script(_base(writer, value), _index(writer, value, kept))
    if len(kept) == len(positions(index)):
        return Part(inside, ATOM)
    return _in_shape(writer, node, inside)


def _base(writer: Writes, value: Any) -> Formula:
    """What an index can stand at: a symbol that has none, or anything in brackets."""
    formula, _ = writer.part(value)
    return formula if isinstance(formula, Symbol | Text) else Fenced(formula)


def _index(writer: Writes, value: Any, index: Any) -> Formula:
    symbol = Script(Sign("·"), Fenced(Sign("⋯"), "["))
    writer.scope.helpers.setdefault("index", (symbol, "Positions are counted from 0."))
    return Fenced(separated(tuple(places(writer, value, index))), "[")


def _element(writer: Writes, node: Node) -> Part:
    whole, position = node.args
    if whole.op == "blocks":
        width = node.value.shape[-1]
        part = slice(position * width, (position + 1) * width)
        of = whole.args[0]
        return Part(Script(_base(writer, of), _index(writer, of, (..., part))), ATOM)
    return Part(Script(Fenced(writer.write(whole)), Number(str(position))), ATOM)


# Several arrays and several axes


def _joined(writer: Writes, node: Node) -> Part:
    """[a ∣ b] along the last axis, [a; b] along the first, or along the one that stands below."""
    axes = np.ndim(node.value)
    axis = (argument(node, 1, "axis") or 0) % axes
    parts = tuple(map(writer.write, node.args[0]))
    blocks = Fenced(separated(parts, "∣" if axis == axes - 1 else ";"), "[")
    return Part(blocks if axis in (0, axes - 1) else Script(blocks, Number(str(axis))), ATOM)


def _stacked(writer: Writes, node: Node) -> Part:
    """(a, b) along a new first axis; along another one it stands below the name."""
    axis = argument(node, 1, "axis") or 0
    inside = Fenced(separated(tuple(map(writer.write, node.args[0]))))
    if axis == 0:
        return Part(inside, ATOM)
    below = Number(str(axis % np.ndim(node.value)))
    return Part(row(Script(Operator("stack"), below), inside), UNARY)


def _reduced(writer: Writes, node: Node) -> Part:
    """Σ over all elements, or over an index for each axis: Σ_t x_:,t."""
    value, *others = node.args
    settings = dict(node.kwargs)
    axis = settings.pop("axis", others[0] if others else None)
    settings.pop("keepdims", None)
    if len(others) > 1 or any(each is not None for each in settings.values()):
        return called(writer, node)
    if axis is None:
        return Part(Big(node.op, writer.write(value, BIG)), BIG)
    count, sizes = np.ndim(value.value), shape(value)
    axes = sorted(each % count for each in (axis if isinstance(axis, tuple) else (axis,)))
    taken: list[str] = []
    letters = {each: writer.letter(sizes[each], taken) for each in axes}
    marks = separated(tuple(letters.get(each, Sign(":")) for each in range(axes[-1] + 1)))
    formula = subscripted(writer.part(value), marks).formula
    for each in reversed(axes):
        last = writer.scope.dimensions.size(sizes[each])
        formula = Big(node.op, formula, equals(letters[each], Number("1")), last)
    return Part(formula, BIG)


def _within(writer: Writes, node: Node) -> Part:
    """[ℓ > (0, 1, …, S − 1)]: 1 at the positions before each length."""
    every = notations.listed(range(np.shape(node.value)[-1]))
    inside = Fenced(row(writer.write(node.args[0], SUM), Sign(">"), every), "[")
    return Part(inside, ATOM) if np.ndim(node.value) == _TABLE else _in_shape(writer, node, inside)


def _is_setting(value: Any) -> bool:
    """True for what can be written: an array, a number, a word, or several of these."""
    if isinstance(value, tuple | list):
        return all(map(_is_setting, value))
    plain = Node | int | float | str | slice | type | np.dtype | None
    return value is ... or isinstance(value, plain)


_NOTATIONS: Final[dict[str, Callable[[Writes, Node], Part]]] = {
    **dict.fromkeys(_FILLED, _filled),
    **dict.fromkeys(("sum", "max", "min", "prod", "mean"), _reduced),
    "arange": _counted,
    "broadcast_to": _broadcast,
    **dict.fromkeys(ORDERS, _turned),
    "getitem": _item,
    "element": _element,
    "store": lambda writer, node: notations.stored(writer, node, ()),
    "concat": _joined,
    "flip": notations.backwards,
    "stack": _stacked,
    "within": _within,
}
