"""Lines that write into an array of zeros: what is read at an index comes back at this index."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.checking.alignment.changes import Both, Change, Place, statements
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.unused import unused
from handgrad.checking.alignment.variants import names_in, parsed, spreads
from handgrad.checking.alignment.wording import said

#: One element of each row or column, by an index for each.
_OF_EACH: Final = ("np.arange({0}.size), {0}.ravel()", "{0}.ravel(), np.arange({0}.size)")
#: Values that are written at one place, of those that fit.
_MOST: Final = 24


class _Line(NamedTuple):
    """A statement of a function, and the variables that it sets."""

    place: Place
    statement: ast.stmt
    sets: set[str]


class Stores:
    """The indices at which the user's functions read and write."""

    def __init__(self, pieces: Iterable[CodePiece]) -> None:
        nodes = [node for piece in pieces for node in ast.walk(piece.tree)]
        found = [each for each in nodes if isinstance(each, ast.Subscript)]
        self._read = _indices(each for each in found if isinstance(each.ctx, ast.Load))
        self._written = _indices(each for each in found if isinstance(each.ctx, ast.Store))
        #: For integers that forward has: an array that backward has by another name.
        self._arrays = {
            name: value
            for piece in pieces
            if piece.in_forward
            for _, call in piece.regions
            for name, value in call.names.items()
            if isinstance(value, np.ndarray) and value.dtype.kind == "i"
        }

    def changes(self, scope: CallScope) -> Iterator[Change]:
        """Lines that write into what a function leaves as zeros, each where it can stand."""
        if isinstance(scope.function, ast.Lambda):
            return
        body = [_Line(*each, _sets(each[1])) for each in statements(scope.function.body)]
        own = {each.arg for each in scope.function.args.args} | names_in(scope.function, ast.Store)
        yield from self._into(own, body, len(body), scope)
        for name in sorted(own):
            sets = [i for i, each in enumerate(body) if name in each.sets]
            match [body[i].statement for i in sets]:
                case [ast.Assign([ast.Name()], ast.Call(func) as made), *others]:
                    value = scope.array(made)
                    is_open = value is not None and not value.any() and bool(others)
                    if value is not None and (is_open or "empty" in ast.unparse(func)):
                        before = scope.with_names({name: np.zeros_like(value)})
                        yield from self._into({name}, body, [*sets, len(body)][1], before)
        for text, lost in _updates(scope):
            phrase = f"{lost} is computed and never used, where it belongs in {text}"
            yield _made(text, lost, phrase, body, len(body))

    def _into(
        self, own: set[str], body: list[_Line], end: int, scope: CallScope
    ) -> Iterator[Change]:
        for target in self._targets(own, scope):
            array = scope.array(target)
            if array is not None and array.size and array.dtype.kind == "f" and not array.any():
                for value in islice(self._values(array, scope), _MOST):
                    part = said(target)
                    phrase = f"nothing is written into {part}, where {said(value)} belongs"
                    text = f"{ast.unparse(target)} = {ast.unparse(value)}"
                    yield _made(text, part, phrase, body, end)

    def _targets(self, own: set[str], scope: CallScope) -> Iterator[ast.expr]:
        """Elements of the function's arrays in which there are zeros."""
        arrays = [
            each
            for each, value in scope.atoms
            if isinstance(each, ast.Name) and each.id in own and _is_open(value)
        ]
        beyond = [ast.Name(name, ast.Load()) for name in sorted(unused(scope.function))]
        for array, index in product(arrays, self._places(scope)) if arrays else ():
            target = ast.Subscript(array, index, ast.Load())
            yield target
            yield from (ast.Subscript(target, each, ast.Load()) for each in beyond)

    def _places(self, scope: CallScope) -> list[ast.expr]:
        """The indices of the source, and those by arrays of integers; each once."""
        whole = [self._renamed(each, scope) for each in (*self._read, *self._written)]
        found = {ast.unparse(each): each for each in whole if scope.knows(each)}
        for each, value in scope.atoms:
            if value.dtype.kind == "i" and value.ndim and scope.call.scope.get("np") is np:
                forms = (form.format(ast.unparse(each)) for form in _OF_EACH)
                found |= {text: parsed(text) for text in forms}
        return list(found.values())

    def _renamed(self, index: ast.expr, scope: CallScope) -> ast.expr:
        """An index by the names that a function has for the same integers."""
        new = copy.deepcopy(index)
        for each in ast.walk(new):
            if isinstance(each, ast.Name) and each.id not in scope.call.names:
                own = self._arrays.get(each.id)
                twins = (
                    name
                    for name, value in scope.call.names.items()
                    if own is not None and isinstance(value, np.ndarray)
                    if np.array_equal(value, own)
                )
                each.id = next(twins, each.id)
        return new

    def _values(self, own: np.ndarray, scope: CallScope) -> Iterator[ast.expr]:
        """Variables of a shape, or that are laid out in it, and elements of them."""
        floats = [(each, value) for each, value in scope.atoms if value.dtype.kind == "f"]
        yield from (each for each, value in floats if value.shape == own.shape and value.any())
        for each, value in floats:
            if value.ndim > 1 and own.ndim == 1 and value.size == own.size:
                yield ast.Call(ast.Attribute(each, "ravel", ast.Load()), [], [])
        names = [each for each, value in floats if isinstance(each, ast.Name) and value.ndim]
        for each, index in product(names, self._written):
            taken = ast.Subscript(each, index, ast.Load())
            part = scope.array(taken) if scope.knows(index) else None
            if part is not None and part.shape == own.shape and part.any():
                yield taken


def _indices(found: Iterable[ast.Subscript]) -> list[ast.expr]:
    """The indices, and those of an element of what one gives, each once."""
    every: dict[str, ast.expr] = {}
    for each in found:
        every.setdefault(ast.unparse(each.slice), each.slice)
    return list(every.values())


def _is_open(value: np.ndarray) -> bool:
    """Return whether an array of floats has zeros in it."""
    return value.dtype.kind == "f" and bool(value.ndim) and bool((value == 0).any())


def _sets(statement: ast.stmt) -> set[str]:
    """The variables that a statement sets; of a loop those of its head."""
    if isinstance(statement, ast.For):
        return names_in(statement.target, ast.Store)
    return set() if hasattr(statement, "body") else names_in(statement, ast.Store)


def _updates(scope: CallScope) -> Iterator[tuple[str, str]]:
    """Updates of a variable by another that is computed and never used, with its name."""
    set_ = names_in(scope.function, ast.Store)
    floats = [(each, value) for each, value in scope.atoms if value.dtype.kind == "f"]
    lost = unused(scope.function) & set_
    arrays = {each.id: value for each, value in floats if isinstance(each, ast.Name)}
    for name, target in product(sorted(lost & {*arrays}), sorted(set_ & {*arrays} - lost)):
        if not spreads(arrays[name], arrays[target].shape):
            continue
        yield from ((f"{target} {sign}= {name}", name) for sign in "+-*/")
        for each, value in floats:
            factor = ast.unparse(each)
            if value.shape == arrays[target].shape and factor not in (target, name):
                yield from ((f"{target} {sign}= {factor} * {name}", name) for sign in "+-")


def _made(text: str, part: str, phrase: str, body: list[_Line], end: int) -> Change:
    """A line after those that set what it reads, or in the place of one that does nothing.

    end: the number of the statements that it may stand behind.
    """
    line = ast.parse(text).body[0]
    needed = names_in(line, ast.Load) | names_in(line, ast.Store)
    made = [i for i, each in enumerate(body[:end]) if not needed.isdisjoint(each.sets)]
    begun = max(made, default=0)
    idle = (each for each in body[begun:end] if isinstance(each.statement, ast.Pass))
    place, statement, _ = next(idle, body[begun])
    while isinstance(statement, ast.For):
        last = statement.body[-1]
        place, statement, _ = next(each for each in body if each.statement is last)
    new: Any = Both([statement, line])
    if isinstance(statement, ast.Return):
        new = Both([line, statement])
    elif isinstance(statement, ast.Pass):
        new = line
    return Change(place, new, "term missing", part, phrase, statement)
