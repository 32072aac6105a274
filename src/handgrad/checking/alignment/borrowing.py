"""Parts of the user's own source that may belong elsewhere in it: indices, conditions, names."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

import numpy as np

from handgrad.checking.alignment.changes import Place
from handgrad.checking.alignment.meant import AsForward
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.stores import Stores
from handgrad.checking.alignment.variants import (
    MISSING,
    Variant,
    filled,
    indices,
    parsed,
    spreads,
)
from handgrad.checking.alignment.wording import said

#: Functions of one array, element by element.
_ELEMENTWISE: Final = frozenset(
    {"sqrt", "exp", "log", "tanh", "abs", "square", "sign", "cos", "sin"}
)


class Borrowed:
    """The indices, conditions and functions that forward and backward are written with."""

    def __init__(self, pieces: Sequence[CodePiece]) -> None:
        self.as_forward, self.stores = AsForward(pieces), Stores(pieces)
        self.where: ast.expr | None = None
        #: Names of arguments that functions multiply by, or divide.
        self.factors: set[str] = set()
        indices: dict[str, ast.expr] = {}
        conditions: dict[str, ast.expr] = {}
        functions: dict[str, ast.expr] = {}
        for piece in pieces:
            for node in ast.walk(piece.tree):
                match node:
                    case ast.Subscript(slice=ast.Slice() | ast.Tuple() as index):
                        indices.setdefault(ast.unparse(index), index)
                    case ast.Compare(ops=[_]):
                        conditions.setdefault(ast.unparse(node), node)
                    case ast.Call(ast.Attribute(ast.Name(), name) as function, [_], []):
                        if name in _ELEMENTWISE:
                            functions.setdefault(ast.unparse(function), function)
                    case ast.FunctionDef():
                        self.factors |= _factors(node)
                    case ast.Call(ast.Attribute(ast.Name(), "where") as function):
                        self.where = function
        self.indices, self.conditions = list(indices.values()), list(conditions.values())
        self.functions = list(functions.values())


def _factors(function: ast.FunctionDef) -> set[str]:
    own = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    products = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult | ast.Div)
    ]
    used = [side for each in products for side in (each.left, each.right)]
    return own & {each.id for each in used if isinstance(each, ast.Name)}


def of_argument(place: Place, node: ast.expr, borrowed: Borrowed) -> Iterator[Variant]:
    """Another number for one that is given to a function as a factor."""
    match place.parent, node:
        case ast.keyword(arg=str(name)), ast.Constant(int() | float() as value):
            if name not in borrowed.factors or isinstance(value, bool):
                return
            for number in (2, 3, 0.5, -1, 1):
                part, kind = f"{name} = {number:g} for {value:g}", "scale missing"
                kind = kind if value == 1 else "scaled"
                if number != value:
                    yield parsed(f"{number}"), kind, part, "another factor belongs there: {}"


def of_index(node: ast.expr, borrowed: Borrowed, scope: CallScope) -> Iterator[Variant]:
    """The index of another place, of the same axes."""
    if not isinstance(node, ast.Subscript):
        return
    own = indices(node.slice)
    if not any(isinstance(each, ast.Slice) for each in own):
        return
    for other in borrowed.indices:
        parts = indices(other)
        alike = len(parts) == len(own) and any(isinstance(each, ast.Slice) for each in parts)
        if alike and ast.unparse(other) != ast.unparse(node.slice) and scope.knows(other):
            new = ast.Subscript(node.value, copy.deepcopy(other), ast.Load())
            new.ctx = node.ctx
            part = f"[{_written(other)}] for [{_written(node.slice)}]"
            phrase = "elements are taken from other positions, by another slice or index: {}"
            yield new, "shifted", part, phrase


def _written(index: ast.expr) -> str:
    return ", ".join(map(ast.unparse, indices(index)))


def insertions(
    node: ast.expr, array: np.ndarray, borrowed: Borrowed, scope: CallScope
) -> Iterator[Variant]:
    """A condition as a factor or a sign, and a function of the values."""
    part = said(node)
    for condition in borrowed.conditions:
        mask = scope.array(condition) if scope.knows(condition) else None
        if mask is None or mask.dtype.kind != "b" or not mask.ndim:
            continue
        if not spreads(mask, array.shape):
            continue
        phrase = f"the mask, the factor {{}}, is forgotten in {part}"
        new = filled("a * m", a=node, m=condition)
        yield new, "mask forgotten", f"({said(condition)})", phrase
        if borrowed.where is not None and scope.knows(borrowed.where):
            signs = filled("where(m, 1, -1)", where=borrowed.where, m=condition)
            phrase = f"the sign, the factor {{}}, is missing in {part}"
            yield filled("a * s", a=node, s=signs), "factor missing", said(signs), phrase
    for function in borrowed.functions:
        if scope.knows(function):
            new = filled("f(a)", f=function, a=node)
            phrase = "the function, the factor or root, {} is not taken where it belongs"
            yield new, "function missing", said(new), phrase


def windows(
    node: ast.expr, array: np.ndarray, target: ast.expr, borrowed: Borrowed, scope: CallScope
) -> Iterator[Variant]:
    """A window of another array as a factor of what a loop adds to a window, as in a convolution.

    It is taken by an index that stands somewhere in the source, or by the counter of a loop.
    """
    held = copy.deepcopy(target)
    held.ctx = ast.Load()  # type: ignore[attr-defined]
    own = scope.array(held)
    if own is None or not own.ndim:
        return
    counters = [ast.Name(name, ast.Load()) for name in scope.steps]
    indices = [each for each in (*borrowed.indices, *counters) if scope.knows(each)]
    arrays = [each for each, value in scope.atoms if value.ndim > 1 and value.dtype.kind == "f"]
    for each, index in product(arrays, indices):
        if isinstance(each, ast.Subscript):
            continue
        window = ast.Subscript(each, copy.deepcopy(index), ast.Load())
        value = scope.array(window)
        fits = value is not None and value.size and spreads(value, own.shape)
        if fits and spreads(array, own.shape):
            phrase = MISSING + f" in {said(node)}"
            yield filled("a * w", a=node, w=window), "factor missing", said(window), phrase


def renamed(
    places: list[tuple[Place, ast.expr]], scope: CallScope
) -> Iterator[tuple[list[tuple[Place, ast.expr]], str, str]]:
    """All uses of a name in a statement as those of another, and two names the other way round."""
    uses: dict[str, list[tuple[Place, ast.expr]]] = {}
    for place, node in places:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            uses.setdefault(ast.unparse(node), []).append((place, node))
    for name, several in uses.items():
        own = scope.array(several[0][1])
        for other, value in scope.atoms if own is not None else ():
            text = ast.unparse(other)
            is_alike = own is not None and (value.shape, value.dtype) == (own.shape, own.dtype)
            if not is_alike or text == name:
                continue
            there = [(place, copy.deepcopy(other)) for place, _ in several]
            if len(several) > 1:
                part = f"{said(other)} for {said(several[0][1])}"
                yield there, part, "another variable belongs there: {}"
            if name < text and text in uses:
                back = [(place, copy.deepcopy(several[0][1])) for place, _ in uses[text]]
                part = f"{said(several[0][1])} and {said(other)}"
                yield [*there, *back], part, "{} are swapped, each in the other's place"
