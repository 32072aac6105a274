"""Parts of the user's own source that may belong elsewhere in it: indices, conditions, names."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.changes import Place
from handgrad.checking.alignment.meant import AsForward
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.stores import Stores
from handgrad.checking.alignment.variants import (
    MISSING,
    Variant,
    binary,
    names_in,
    operands,
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
                        self.where: ast.expr | None = function
        self.indices, self.conditions = list(indices.values()), list(conditions.values())
        self.functions = list(functions.values())
        self.where = getattr(self, "where", None)


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
    own = _parts(node.slice)
    if not any(isinstance(each, ast.Slice) for each in own):
        return
    for other in borrowed.indices:
        parts = _parts(other)
        alike = len(parts) == len(own) and any(isinstance(each, ast.Slice) for each in parts)
        if alike and ast.unparse(other) != ast.unparse(node.slice) and scope.knows(other):
            new = ast.Subscript(node.value, copy.deepcopy(other), ast.Load())
            new.ctx = node.ctx
            part = f"[{_written(other)}] for [{_written(node.slice)}]"
            phrase = "elements are taken from other positions, by another slice or index: {}"
            yield new, "shifted", part, phrase


def _written(index: ast.expr) -> str:
    return ", ".join(map(ast.unparse, _parts(index)))


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def insertions(node: ast.expr, array: np.ndarray, borrowed: Borrowed, scope: CallScope) -> Any:
    """A condition as a factor or a sign, and a function of the values."""
    part = said(node)
    for condition in borrowed.conditions:
        mask = scope.array(condition) if scope.knows(condition) else None
        if mask is None or mask.dtype.kind != "b" or not mask.ndim or not array.ndim:
            continue
        if not spreads(mask, array.shape):
            continue
        name = said(condition)
        phrase = f"the mask, the factor {{}}, is forgotten in {part}"
        yield binary(node, ast.Mult(), condition), "mask forgotten", f"({name})", phrase
        if borrowed.where is not None and scope.knows(borrowed.where):
            given = [copy.deepcopy(condition), ast.Constant(1), parsed("-1")]
            signs = ast.Call(copy.deepcopy(borrowed.where), given, [])
            phrase = f"the sign, the factor {{}}, is missing in {part}"
            yield binary(node, ast.Mult(), signs), "factor missing", said(signs), phrase
    for function in borrowed.functions:
        if scope.knows(function):
            new = ast.Call(copy.deepcopy(function), [node], [])
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
            yield binary(node, ast.Mult(), window), "factor missing", said(window), phrase


def siblings(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """A further term that is to one of the sum as dk @ Wk.T is to dq @ Wq.T."""
    terms = list(operands(node, ast.Add))
    written = {ast.unparse(each) for each in terms}
    for term in terms:
        for other in _renamed(term, scope):
            if ast.unparse(other) not in written:
                written.add(ast.unparse(other))
                phrase = f"the term {{}} is missing beside {said(term)}"
                yield binary(node, ast.Add(), other), "term missing", said(other), phrase


def _renamed(term: ast.expr, scope: CallScope) -> Iterator[ast.expr]:
    """The term with one letter of its names changed into another wherever that gives a name."""
    used = names_in(term)
    pairs = {
        (a, b)
        for name in used
        for other in scope.call.names
        if len(name) == len(other)
        for a, b, *more in [_differing(name, other)]
        if a and not more
    }
    for a, b in sorted(pairs):
        new = copy.deepcopy(term)
        for each in ast.walk(new):
            if isinstance(each, ast.Name) and each.id.replace(a, b) in scope.call.names:
                each.id = each.id.replace(a, b)
            elif isinstance(each, ast.Attribute) and not isinstance(each.value, ast.Call):
                other = ast.Attribute(each.value, each.attr.replace(a, b), ast.Load())
                each.attr = other.attr if scope.array(other) is not None else each.attr
        yield new


def _differing(one: str, other: str) -> tuple[str, ...]:
    """The letters in which two names of one length differ, if that is one; else none."""
    found = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    return found[0] if len(found) == 1 else ("", "")


def exchanged(
    places: list[tuple[Place, ast.expr]], scope: CallScope
) -> Iterator[tuple[Place, Any, tuple[tuple[Place, Any], ...], str, str]]:
    """All uses of a name in a statement as those of another, and two names the other way round."""
    uses: dict[str, list[tuple[Place, ast.expr]]] = {}
    for place, node in places:
        is_used = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        if is_used and scope.array(node) is not None:
            uses.setdefault(ast.unparse(node), []).append((place, node))
    atoms = {ast.unparse(each): (each, value) for each, value in scope.atoms}
    for name, several in uses.items():
        own = scope.array(several[0][1])
        for text, (other, value) in atoms.items():
            if text == name or own is None or value.shape != own.shape:
                continue
            if value.dtype.kind != own.dtype.kind:
                continue
            there = uses.get(text, [])
            new = [(place, copy.deepcopy(other)) for place, _ in several]
            if len(several) > 1:
                part = f"{said(other)} for {said(several[0][1])}"
                yield *new[0], tuple(new[1:]), part, "another variable belongs there: {}"
            if there and name < text:
                back = [(place, copy.deepcopy(several[0][1])) for place, _ in there]
                part = f"{said(several[0][1])} and {said(other)}"
                yield *new[0], (*new[1:], *back), part, "{} are swapped, each in the other's place"
