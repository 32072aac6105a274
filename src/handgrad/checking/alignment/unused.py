"""Values that a function computes, or is given, and never uses; arrays that it never fills."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import names_in

#: Functions that make arrays to be filled.
_EMPTY: Final = frozenset({"zeros", "zeros_like", "empty", "empty_like"})


def unused(tree: ast.AST) -> frozenset[str]:
    """The variables and arguments of a function that nothing in it reads."""
    set_, read = set(), set()
    for each in ast.walk(tree):
        match each:
            case ast.arg(name):
                set_.add(name)
            case ast.Name(name, ast.Store()):
                set_.add(name)
            case ast.Name(name, ast.Load()):
                read.add(name)
    return frozenset(set_ - read - {"self", "_"})


def takes_in(change: Change, names: frozenset[str]) -> bool:
    """Return whether a change reads one of these variables."""
    return isinstance(change.new, ast.AST) and not names.isdisjoint(names_in(change.new))


def unfilled(pieces: Iterable[CodePiece]) -> Iterator[ast.Assign]:
    """The lines of arrays that nothing is written into, and that are zeros to the end."""
    for function, call in (region for piece in pieces for region in piece.regions):
        scope = CallScope(function, call)
        for line in _without_stores(function):
            array = scope.array(line.targets[0])
            if array is not None and (not array.any() or "empty" in ast.unparse(line.value)):
                yield line


def idle(pieces: Iterable[CodePiece]) -> ast.stmt | None:
    """A line that does nothing, beside others or in a loop."""
    nodes = (each for piece in pieces for each in ast.walk(piece.tree))
    blocks = (each for each in nodes if isinstance(each, ast.FunctionDef | ast.For))
    lines = (line for block in blocks for line in block.body)
    return next((line for line in lines if isinstance(line, ast.Pass)), None)


def _without_stores(tree: ast.AST) -> Iterator[ast.Assign]:
    """The lines that make an array of zeros into which nothing is written."""
    nodes = list(ast.walk(tree))
    written: list[str] = []
    for each in nodes:
        match each:
            case ast.Name(name, ast.Store()):
                written.append(name)
            case ast.Subscript(ctx=ast.Store()):
                written += _names(each.value) * 2
            case ast.Expr(ast.Call()) | ast.keyword(arg="out"):
                written += _names(each) * 2
            case ast.Call(ast.Name(), args):  # a function of the user's may write into it
                written += [name for given in args for name in _names(given)] * 2
    for each in nodes:
        match each:
            case ast.Assign([ast.Name(name)], ast.Call(func)) if written.count(name) == 1:
                if ast.unparse(func).rpartition(".")[2] in _EMPTY:
                    yield each


def _names(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
