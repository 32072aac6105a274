"""Changes of one place of a source: what people forget, exchange or add, in one table.

A change is an expression (or a statement) for another at a place of the tree. It is made by
changing the tree, so that what is run is what is told.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """A field of a node of the tree, or an element of one that is a list."""

    parent: ast.AST
    field: str
    index: int | None = None

    @property
    def holder(self) -> Any:
        """The node, or for a statement the list, that the place is in."""
        return self.parent.body if isinstance(self.parent, _Holder) else self.parent

    def get(self) -> Any:
        found = getattr(self.parent, self.field)
        return found if self.index is None else found[self.index]

    def put(self, new: Any) -> None:
        if self.index is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.index] = new


@dataclass(eq=False)
class Change:
    """Another node at a place, as a kind of fault with the part concerned and a sentence.

    statement: the statement that holds the place, as it stands in the file.
    """

    place: Place
    new: Any
    kind: str
    part: str
    phrase: str
    statement: ast.stmt | ast.Lambda
    #: More places that change with it, as where two operands are exchanged.
    others: tuple[tuple[Place, Any], ...] = ()
    #: Its size, where what it takes in stands elsewhere in the source as it is, and is one thing.
    words: float | None = None

    @property
    def line(self) -> int:
        old = self.place.get()
        return int(getattr(old, "lineno", self.statement.lineno))

    @contextmanager
    def made(self) -> Iterator[None]:
        """The tree with the change in it."""
        every = ((self.place, self.new), *self.others)
        holders = {id(place.holder) for place, _ in every}
        if any(_holds(new, holders, place.get()) for place, new in every):
            # As copies, for what is put in a place is made of what holds it.
            every = tuple((place, copy.deepcopy(new)) for place, new in every)
        before = [(place, place.get()) for place, _ in every]
        try:
            for place, new in every:
                place.put(new)
            yield
        finally:
            for place, old in before:
                place.put(old)


def _holds(new: Any, holders: set[int], old: Any) -> bool:
    """Return whether one of these nodes is in another, which gets places in the file.

    They are those of what it stands for.
    """
    line, column = getattr(old, "lineno", 1), getattr(old, "col_offset", 0)
    found = False
    waiting = [new]
    while waiting:
        node = waiting.pop()
        if id(node) in holders:
            found = True
        elif isinstance(node, list):
            waiting += node
        elif isinstance(node, ast.AST):
            if "lineno" in node._attributes and not hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
                node.col_offset = node.end_col_offset = column  # type: ignore[attr-defined]
            waiting += [getattr(node, each, None) for each in node._fields]
    return found


def probed(place: Place) -> ast.expr | None:
    """Other values for those at a place, whatever they are; None where no values stand."""
    old = place.get()
    if not isinstance(old, ast.expr) or isinstance(
        old, ast.Constant | ast.Slice | ast.Tuple | ast.List | ast.Starred | ast.Dict
    ):
        return None
    if isinstance(getattr(old, "ctx", None), ast.Store | ast.Del):
        return None
    scaled = ast.BinOp(old, ast.Mult(), ast.Constant(1.37))
    return ast.BinOp(scaled, ast.Add(), ast.Constant(0.37))


def statements(body: list[ast.stmt]) -> Iterator[tuple[Place, ast.stmt]]:
    """Statements in order, those inside others too; functions inside are left to themselves."""
    for statement in body:
        place = Place(_Holder(body), "body", next(i for i, s in enumerate(body) if s is statement))
        yield place, statement
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, name, []))


class _Holder(ast.AST):
    """A list of statements as the field of a node."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.body = body


class Both(ast.If):
    """Two statements where one stood, compiled as a condition that holds."""

    def __init__(self, body: list[ast.stmt] | None = None) -> None:
        super().__init__(ast.Constant(True), body or [], [])


def text_of(statement: ast.AST) -> str:
    """The source of a statement, or of two."""
    if isinstance(statement, Both):
        return "\n".join(map(ast.unparse, statement.body))
    return "" if isinstance(statement, ast.Pass) else ast.unparse(statement)


class Head(ast.AST):
    """One expression of a statement as if it were all of it."""

    def __init__(self, parent: ast.AST, field: str, index: int | None = None) -> None:
        self.place = Place(parent, field, index)


def _asks_for_a_size(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(_, "shape" | "size" | "ndim") | ast.Slice():
            return True
        case ast.Call(ast.Name("len" | "range" | "enumerate")):
            return True
        case ast.Call(ast.Attribute(_, "size" | "shape" | "ndim" | "numel" | "arange")):
            return True
        case ast.Subscript(ast.Attribute(_, "shape")):
            return True
    return False


def expressions(node: ast.AST) -> Iterator[tuple[Place, ast.expr]]:
    """Places of expressions below a node, outermost first; those of inner statements are not.

    What a size is asked of is left out: another array there may have the same size by chance.
    """
    if _asks_for_a_size(node):
        return
    for name, value in ast.iter_fields(node):
        for index, each in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(each, ast.stmt | ast.Lambda):
                continue
            if isinstance(each, ast.expr):
                yield Place(node, name, index), each
            if isinstance(each, ast.AST):
                yield from expressions(each)
