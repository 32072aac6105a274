"""The values that parts of an expression would need for the whole to have a right one.

Sums, products and quotients are solved for each operand as the others stand, from the outside in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeGuard

import numpy as np

from handgrad.checking.alignment.changes import Place
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.solved import solved
from handgrad.checking.alignment.variants import Variant, spreads
from handgrad.checking.alignment.wording import said
from handgrad.checking.attempts import attempted

#: Parts of an expression that are solved for.
_MOST: Final = 16
_RELATIVE: Final = 1e-7


Solve = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: The operand of a value beside the other one.
_LEFT: Final[dict[type[ast.operator], Solve]] = {
    ast.Add: lambda value, right: value - right,
    ast.Sub: lambda value, right: value + right,
    ast.Mult: lambda value, right: value / right,
    ast.Div: lambda value, right: value * right,
}
_RIGHT: Final[dict[type[ast.operator], Solve]] = {
    ast.Add: lambda value, left: value - left,
    ast.Sub: lambda value, left: left - value,
    ast.Mult: lambda value, left: value / left,
    ast.Div: lambda value, left: left / value,
}


class Needed(NamedTuple):
    """A part of an expression, with the value that it would need."""

    place: Place
    node: ast.expr
    value: np.ndarray


def of_parts(place: Place, value: np.ndarray, scope: CallScope) -> Iterator[tuple[Place, Variant]]:
    """Changes of the parts of an expression by which the whole has this value."""
    for part in [*parts(place, place.get(), value, scope)][:_MOST]:
        own = scope.array(part.node)
        is_number = isinstance(part.node, ast.Constant)
        if is_number or not part.value.any() or own is None or not _spreads(own, part.value.shape):
            continue
        for each in attempted(_held(part, scope)):
            yield part.place, each
        broadcast = np.broadcast_to(own, part.value.shape).astype(float)
        for each in attempted(solved(part.node, broadcast, part.value.reshape(1, -1), scope)):
            if each[2] != said(part.node):  # its square is told as a power
                yield part.place, each


def parts(place: Place, node: ast.expr, value: np.ndarray, scope: CallScope) -> Iterator[Needed]:
    """The operands of an expression with the values that they need, each before its own."""
    with np.errstate(all="ignore"):
        for part in _operands(node, value, scope):
            if np.isfinite(part.value).all():
                yield part
                yield from parts(part.place, part.node, part.value, scope)


def _operands(node: ast.expr, value: np.ndarray, scope: CallScope) -> Iterator[Needed]:
    """The operands of one operation, with what each would need beside the other."""
    match node:
        case ast.UnaryOp(ast.USub(), operand):
            yield Needed(Place(node, "operand"), operand, -value)
        case ast.Call(ast.Attribute(operand, "reshape" | "view") as function):
            own = scope.array(operand)
            if own is not None and own.size == value.size:
                yield Needed(Place(function, "value"), operand, value.reshape(own.shape))
        case ast.Attribute(operand, "T"):
            yield Needed(Place(node, "value"), operand, value.T)
        case ast.BinOp(left, op, right):
            one, other = scope.array(left), scope.array(right)
            if _spreads(other, value.shape) and (solve := _LEFT.get(type(op))) is not None:
                yield Needed(Place(node, "left"), left, solve(value, other))
            if _spreads(one, value.shape) and (solve := _RIGHT.get(type(op))) is not None:
                yield Needed(Place(node, "right"), right, solve(value, one))


def _spreads(array: np.ndarray | None, shape: tuple[int, ...]) -> TypeGuard[np.ndarray]:
    """Return whether these are numbers that broadcast to a shape."""
    return array is not None and array.dtype.kind in "iuf" and spreads(array, shape)


def _held(part: Needed, scope: CallScope) -> Iterator[Variant]:
    """Variables that have the value."""
    size = float(np.max(np.abs(part.value), initial=0.0))
    for each, value in scope.atoms:
        if value.dtype.kind != "f" or not value.ndim or not _spreads(value, part.value.shape):
            continue
        if np.allclose(value, part.value, 0.0, _RELATIVE * size):
            words = f"{said(each)} for {said(part.node)}"
            yield each, "stale variable", words, "another variable belongs there: {}"
