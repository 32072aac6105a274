"""What a function computes, or is given, and never uses."""

from __future__ import annotations

import ast

from handgrad.checking.alignment.changes import Change


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
    if not names or not isinstance(change.new, ast.AST):
        return False
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(change.new))
