"""The values that each line of a backward makes, seen as it runs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.evaluating import PURE, evaluated
from handgrad.checking.alignment.pieces import CodePiece, as_it_is
from handgrad.checking.tensors import as_arrays
from handgrad.checking.trial import leaves

#: Frames that no call is written for: comprehensions, and what operators and indices run.
_NO_CALL: Final = re.compile(r"<(?!lambda).*>|__(?!call__).*__")
#: Elements of all values that are kept.
_MOST: Final = 2_000_000


def called(target: ast.expr) -> str:
    """The last name or key of what is assigned to: "W" of `self.grads["W"][i]`."""
    match target:
        case ast.Subscript(_, ast.Constant(str(key))):
            return key
        case ast.Subscript(value) | ast.Starred(value):
            return called(value)
        case ast.Attribute(_, name) | ast.Name(name):
            return name
    return ""


def is_copy(statement: ast.stmt) -> bool:
    """Return whether a statement sets a variable to another's value, and computes nothing."""
    plain = (ast.Name, ast.Attribute, ast.Subscript)
    return isinstance(statement, ast.Assign) and isinstance(statement.value, plain)


class LineValues:
    """For each assignment and return the arrays that it has made, in the order of the rounds.

    names: the variables as a line began, round by round. results: those of the calls of Python's
    functions that it made. made: the same arrays as they came.
    """

    def __init__(self, pieces: Iterable[CodePiece]) -> None:
        self.values: dict[ast.stmt, list[np.ndarray]] = {}
        self.names: dict[ast.stmt, list[dict[str, Any]]] = {}
        self.results: dict[ast.stmt, list[list[Any]]] = {}
        self.made: list[tuple[ast.stmt, np.ndarray]] = []
        self._statements: dict[CodeType, dict[int, ast.stmt]] = {}
        self._open: dict[FrameType, ast.stmt | None] = {}
        self._left = _MOST
        for piece in pieces:
            for function, call in piece.regions:
                own = self._statements.setdefault(call.code, {})
                for each in ast.walk(function):
                    if isinstance(each, ast.Assign | ast.AugAssign | ast.Return):
                        last = each.end_lineno or each.lineno
                        own |= dict.fromkeys(range(each.lineno, last + 1), each)

    def watched(self, run: Callable[[], Any], codes: dict[CodeType, CodeType]) -> Any:
        """The run's result. codes: of a changed function's code, the code that it stands for."""
        self._codes = codes
        before = sys.gettrace()
        sys.settrace(self._watch)
        try:
            return run()
        finally:
            sys.settrace(before)

    def _watch(self, frame: FrameType, event: str, result: Any) -> Any:
        lines = self._statements.get(self._codes.get(frame.f_code, frame.f_code))
        if self._left <= 0:
            return None
        if lines is None:
            return self._watch_call(frame, event, result)
        statement = lines.get(frame.f_lineno) if event == "line" else None
        before = self._open.get(frame)
        if before is not None and statement is not before:
            self._note(before, frame, result if event == "return" else None)
        if statement is not None and statement is not before:
            self.names.setdefault(statement, []).append(as_it_is(frame.f_locals))
            self.results.setdefault(statement, []).append([])
        self._open[frame] = statement
        if event == "return":
            self._open.pop(frame)
            self._note_result(frame, result)
        return self._watch

    def _watch_call(self, frame: FrameType, event: str, result: Any) -> Any:
        """Note what a function that is not the user's gives to a line of one that is."""
        name = frame.f_code.co_name
        if event == "return":
            self._note_result(frame, result)
        elif frame.f_back not in self._open or name in PURE or _NO_CALL.fullmatch(name):
            return None
        frame.f_trace_lines = False
        return self._watch_call

    def _note_result(self, frame: FrameType, result: Any) -> None:
        caller = None if frame.f_back is None else self._open.get(frame.f_back)
        if caller is not None:
            self.results[caller][-1].append(result)

    def _note(self, statement: ast.stmt, frame: FrameType, result: Any) -> None:
        made: list[Any] = [result]
        if isinstance(statement, ast.Assign):
            made = [
                evaluated(each, frame.f_globals, frame.f_locals)
                for target in statement.targets
                for each in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
        elif isinstance(statement, ast.AugAssign):
            made = [evaluated(statement.target, frame.f_globals, frame.f_locals)]
        for each in map(as_arrays, made):
            if isinstance(each, np.ndarray | np.floating | float | tuple | list):
                arrays = [np.array(leaf) for leaf in leaves(each) if leaf.dtype.kind == "f"]
                self._left -= sum(array.size for array in arrays)
                self.values.setdefault(statement, []).extend(arrays)
                self.made += [(statement, array) for array in arrays]
