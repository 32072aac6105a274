"""What the derivation writes is run: expressions, to know their values, and both functions.

Nothing of the user's stands in it but names of variables, which are identifiers; sizes that a user
writes, such as 4 * H, are computed and not run.
"""

from __future__ import annotations

import ast
import linecache
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from handgrad.errors import ArgumentError

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def value_of(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression that the derivation wrote."""
    return eval(expression, {"np": np, **names})


def functions_of(source: str) -> dict[str, Any]:
    """The functions of a source that the derivation wrote; tracebacks and inspect can show it."""
    filename = f"<derived {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names: dict[str, Any] = {"np": np}
    exec(compile(source, filename, "exec"), names)
    return names


def size(text: str, lengths: Mapping[str, int]) -> int:
    """The length that letters and whole numbers with + - * // give.

    Raises ArgumentError for any other text, and for a letter without a length.
    """
    try:
        return _size(ast.parse(text, mode="eval").body, lengths)
    except (SyntaxError, KeyError, ZeroDivisionError):
        raise ArgumentError(
            f"derive: {text!r} is no size; allowed: letters and whole numbers with + - * //"
        ) from None


def _size(node: ast.expr, lengths: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return lengths[name]
        case ast.BinOp(left=left, op=kind, right=right):
            return _OPERATORS[type(kind)](_size(left, lengths), _size(right, lengths))
    raise KeyError
