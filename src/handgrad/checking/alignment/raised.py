"""The line by which a backward raises, or from which another number of gradients comes back."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator, Sequence

import numpy as np

from handgrad.checking.alignment.lines import called
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.pool import SweptForward
from handgrad.checking.alignment.variants import names_in
from handgrad.checking.trial import TargetExit, TrialFault
from handgrad.program.source import nested


def raising_line(fault: TrialFault, pieces: Sequence[CodePiece]) -> ast.stmt | None:
    """The innermost line of the user's that raised, or the last that gives something back."""
    cause = fault.__cause__
    if isinstance(cause, TargetExit):
        cause = cause.__cause__
    if cause is None:
        returned = (each for each in _plain(pieces[:1]) if isinstance(each, ast.Return))
        return max(returned, key=lambda each: each.lineno, default=None)
    last: ast.stmt | None = None
    for frame, number in traceback.walk_tb(cause.__traceback__):
        own = [piece for piece in pieces if frame.f_code in nested(piece.code)]
        at = (e for e in _plain(own) if e.lineno <= number <= (e.end_lineno or number))
        last = next(at, last)
    return last


def _plain(pieces: Sequence[CodePiece]) -> Iterator[ast.stmt]:
    """The statements that hold no others."""
    nodes = (each for piece in pieces for each in ast.walk(piece.tree))
    return (each for each in nodes if isinstance(each, ast.stmt) and not hasattr(each, "body"))


def with_makers(line: ast.stmt, pieces: Sequence[CodePiece]) -> set[ast.stmt]:
    """A line, and those that set the variables that it reads."""
    read = names_in(line)
    sets = (each for each in _plain(pieces) if isinstance(each, ast.Assign))
    return {line, *(each for each in sets if read.intersection(map(called, each.targets)))}


def meant_to_be(line: ast.stmt, derived: SweptForward) -> str:
    """The shape of the gradient that a line is to make; "" if unknown."""
    targets = line.targets if isinstance(line, ast.Assign) else []
    for name in (called(each) for each in targets if not isinstance(each, ast.Subscript)):
        for right in derived.called(name):
            shape = np.shape(derived.value(right))
            return f"{name}, the gradient of {right.node.name}, is to be of shape {shape}"
    return ""
