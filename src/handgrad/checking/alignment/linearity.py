"""The line by which a gradient is not linear in what flows back.

Of −dy each line of a backward makes the opposite of what it makes of dy, or, where dy is not in it,
the same. A sum of the two, or a product with dy twice in it, is neither.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from handgrad.checking.alignment.lines import LineValues
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.trial import backward, like_nested
from handgrad.checking.trial import forward as run_forward


def not_linear(pieces: Sequence[CodePiece], trials: Trials) -> tuple[ast.stmt, str] | None:
    """The first such line and a sentence on it.

    Where it adds what a line before it makes without dy, and which is called a gradient, that line.
    """
    own = [piece for piece in pieces if not piece.in_forward]
    ahead, turned = (_values(own, trials, sign) for sign in (1.0, -1.0))
    without: dict[str, ast.stmt] = {}
    for statement, values in ahead.items():
        others = turned.get(statement, [])
        pairs = list(zip(values, others, strict=False))
        if len(values) != len(others) or any(one.shape != two.shape for one, two in pairs):
            return None
        name = _set_by(statement)
        if all(_near(one, -two) for one, two in pairs):
            without.pop(name, None)
        elif all(_near(one, two) for one, two in pairs):
            if name.casefold().startswith(("d", "g")):
                without[name] = statement
        else:
            read = [each.id for each in ast.walk(statement) if isinstance(each, ast.Name)]
            for each in read:
                if each in without:
                    return without[each], "nothing of dy is in"
            return statement, "not linear in dy is"
    return None


def _values(
    own: Sequence[CodePiece], trials: Trials, sign: float
) -> dict[ast.stmt, list[np.ndarray]]:
    """The values that each line makes of the first draw's dy, or of −dy, in order."""
    lines, done = LineValues(own), trials.runs[0]

    def run() -> None:
        _, cache = run_forward(trials.functions, done.arrays)
        backward(trials.functions, like_nested(done.dy, lambda dy: sign * dy), cache)

    with trials.quietly():
        lines.watched(run, {})
    return lines.values


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.allclose(one, other, 1e-9, 1e-12 * np.max(np.abs(one), initial=0.0)))


def _set_by(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign([ast.Name(name)]):
            return name
    return ""
