"""Which arrays an axis of a value comes from, where it is computed step by step along it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from handgrad.derivation.equations import indexing
from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer

#: Functions that act element by element, or leave the steps where another order says they are.
_ELEMENTWISE: Final = frozenset(
    {"abs", "activate", "clip", "cos", "erf", "exp", "expm1", "flip", "log", "log1p", "logistic"}
    | {"maximum", "minimum", "negative", "sigmoid", "sign", "sin", "sqrt", "square", "tanh"}
)
#: Functions whose values come from no array: constants, and the places of an axis.
_WITHOUT: Final = frozenset({"arange", "full_like", "ones_like", "zeros_like"})
#: What stands for an array of which nothing is known step by step.
OPAQUE: Final = ""


def carriers(writer: Writer, node: Node, axis: int) -> Iterator[tuple[str, int]]:
    """The names that have this axis of the value, counted from the last, and which of theirs it is.

    OPAQUE where it comes from something else.
    """
    shape = writer.shape(node)
    if len(shape) < -axis or shape[axis] == 1:
        return
    inner = writer.bare(node)
    if inner is not node:
        found = same_axis(shape, writer.shape(inner), axis)
        if found is None:
            yield OPAQUE, axis
        else:
            yield from carriers(writer, inner, found)
        return
    match node:
        case nodes.Name(name):
            yield name, axis
        case nodes.Sum() | nodes.Product() | nodes.Negative() | nodes.Compare() | nodes.Logic():
            for part in nodes.children(node):
                value = part.value if isinstance(part, nodes.Term | nodes.Factor) else part
                yield from carriers(writer, value, axis)
        case nodes.Power(base, _):
            yield from carriers(writer, base, axis)
        case nodes.Where(condition, yes, no):
            for part in (condition, yes, no):
                yield from carriers(writer, part, axis)
        case nodes.MatMul(left, right) if len(writer.shape(right)) == 1:
            yield from carriers(writer, left, axis - 1)
        case nodes.MatMul(left, right):
            if axis != -1:
                yield from carriers(writer, left, axis)
            if axis != -2:
                yield from carriers(writer, right, axis)
        case nodes.Transpose(value):
            yield from carriers(writer, value, {-1: -2, -2: -1}.get(axis, axis))
        case nodes.Call(function, arguments, _) if called(function) in _ELEMENTWISE:
            for part in arguments:
                yield from carriers(writer, part, axis)
        case nodes.Call(function, _, _) if called(function) in _WITHOUT:
            return
        case nodes.Call(function, (nodes.Name(name), *_), _) if (
            called(function) == "stack" and name in writer.frame.sequences
        ):
            is_of_steps = stacked_axis(writer, node) == axis
            yield (name, writer.frame.sequences[name].axis) if is_of_steps else (OPAQUE, axis)
        case nodes.Index(value, index) if (kept := _kept_axes(writer, value, index)) is not None:
            yield from carriers(writer, value, kept[axis])
        case _:
            yield OPAQUE, axis


def stacked_axis(writer: Writer, node: nodes.Call) -> int:
    """The axis along which arrays are stacked, counted from the last."""
    axis = next((writer.value(each.value) for each in node.keywords), 0)
    axes = len(writer.shape(node))
    return int(axis) % axes - axes


def numbered_axes(writer: Writer, node: Node) -> set[int]:
    """The axes, counted from the last, of which a condition compares the places."""
    node = writer.bare(node)
    match node:
        case nodes.Where(condition, yes, no):
            found = set(places(writer, condition))
            return found | numbered_axes(writer, yes) | numbered_axes(writer, no)
        case nodes.Sum() | nodes.Product() | nodes.Negative():
            parts = (
                part.value if isinstance(part, nodes.Term | nodes.Factor) else part
                for part in nodes.children(node)
            )
            return set[int]().union(*(numbered_axes(writer, part) for part in parts))
    return set()


def is_counted(writer: Writer, node: Node) -> bool:
    """Whether the value is a condition that compares places."""
    return bool(set(places(writer, node)))


def places(writer: Writer, node: Node) -> Iterator[int]:
    """The axes of a condition that are numbered in it."""
    shape = writer.shape(node)
    inner = writer.bare(node)
    match inner:
        case nodes.Compare() | nodes.Logic():
            found = {axis for part in nodes.children(inner) for axis in places(writer, part)}
        case nodes.Call(function, (first, *_), _) if called(function) == "flip":
            found = set(places(writer, first))
        case nodes.Call(function, _, _) if called(function) == "arange":
            found = {-1}
        case _:
            found = set()
    for axis in found:
        outer = same_axis(writer.shape(inner), shape, axis)
        if outer is not None and shape[outer] != 1:
            yield outer


def same_axis(outside: tuple[int, ...], inside: tuple[int, ...], axis: int) -> int | None:
    """The axis of another shape of the same array; None where axes are joined or parted."""
    common = min(len(outside), len(inside), -axis)
    if outside[len(outside) - common :] == inside[len(inside) - common :] and common == -axis:
        return axis
    if [size for size in outside if size != 1] != [size for size in inside if size != 1]:
        return None
    later = sum(size != 1 for size in outside[axis:])
    places = [i - len(inside) for i, size in enumerate(inside) if size != 1]
    return places[-later]


def _kept_axes(writer: Writer, value: Node, index: Node) -> list[int] | None:
    """The axes that slices leave of an array, counted from the last; None for other indices."""
    positions = index.items if isinstance(index, nodes.Sequence) else (index,)
    axes = len(writer.shape(value))
    kept: list[int] = []
    for i, each in enumerate(positions):
        if isinstance(each, nodes.Slice):
            kept.append(i - axes)
        elif indexing.place_of(writer, each) is None:
            return None
    return [*kept, *range(len(positions) - axes, 0)]
