"""The line by which a gradient is not linear in what flows back.

Of −dy each line of a backward makes the opposite of what it makes of dy, or, where dy is not in it,
the same. A sum of the two, or a product with dy twice in it, is neither.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

import numpy as np

from handgrad.checking.alignment.lines import called
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.alignment.variants import names_in
from handgrad.checking.trial import backward, forward, like_nested

_NOT_LINEAR: Final = "not linear in dy is"
_NOTHING: Final = "nothing of dy is in"


def not_linear(
    pieces: Sequence[CodePiece], trials: Trials, name: str
) -> tuple[ast.stmt, str] | None:
    """The first such line, as they run, and a sentence on it; None where this gradient is linear.

    Where it adds what a line before it makes without dy, and which is called a gradient, that line.
    """
    if _is_linear(trials, name):  # as with a step of an optimizer, from the weights there were
        return None
    own = [piece for piece in pieces if not piece.in_forward]
    ahead, turned = (trials.line_values(own, sign=sign).made for sign in (1.0, -1.0))
    without: dict[str, ast.stmt] = {}
    for (statement, one), (other, two) in zip(ahead, turned, strict=False):
        if statement is not other or one.shape != two.shape:
            return None
        name = _set_by(statement)
        if _near(one, -two):
            without.pop(name, None)
        elif _near(one, two):
            if name.casefold().startswith(("d", "g")):
                without.setdefault(name, statement)
        else:
            read = names_in(statement)
            first = next((line for name, line in without.items() if name in read), None)
            return (statement, _summand(statement)) if first is None else (first, _NOTHING)
    return None


def _is_linear(trials: Trials, name: str) -> bool:
    """Return whether −dy makes the opposite of this gradient."""
    done = trials.runs[0]
    if np.asarray(done.gradients[name]).dtype.kind != "f":
        return False
    with trials.quietly():
        _, cache = forward(trials.functions, done.arrays)
        turned = backward(trials.functions, like_nested(done.dy, np.negative), cache)
    return _near(np.asarray(done.gradients[name]), -np.asarray(turned[name]))


def _summand(statement: ast.stmt) -> str:
    """The sentence on a line that is not linear, with a number that it adds."""
    match getattr(statement, "value", None):
        case ast.BinOp(_, ast.Add() | ast.Sub(), ast.Constant(number)):
            return f"a gradient belongs where the summand {number!r} stands: {_NOT_LINEAR}"
    return _NOT_LINEAR


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.allclose(one, other, 1e-9, 1e-12 * np.max(np.abs(one), initial=0.0)))


def _set_by(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign([target]) | ast.AugAssign(target):
            return called(target)
    return ""
