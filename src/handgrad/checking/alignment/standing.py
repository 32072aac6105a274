"""The lines of a backward by the values that they make: right ones, or others."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.evaluating import results_of
from handgrad.checking.alignment.lines import LineValues, called, is_copy
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.pool import SweptForward
from handgrad.checking.alignment.trials import Trials, is_equal

#: The words that a line counts where its values are right ones, but not those that it is called
#: after; where they are none; and where a change gives it others although they were right.
_MISCALLED: Final = 1.0
_DEPARTING: Final = 2.0
_MOVED: Final = 2.0
#: The words more of a line that departs in spite of the change that is made to it.
_OWN: Final = 2.0

#: The values that lines make, round by round.
Made = Mapping[Any, list[np.ndarray]]


class Standing:
    """For each statement True where all it makes is right, False where something is not.

    A statement is not in `of` where its values are too plain to tell. A value that is not among
    the right ones need not be wrong, for there are many ways to a gradient.
    """

    def __init__(
        self,
        derived: SweptForward,
        trials: Trials,
        pieces: Sequence[CodePiece],
        raising: ast.AST | None,
    ) -> None:
        """raising: the line by which a backward raises, which makes no right value."""
        self.derived, self.trials, self.pieces = derived, trials, pieces
        self._raising = raising

    def forget(self) -> None:
        """Let lines be judged anew, by the functions that are in force when it is asked."""
        for name in ("_lines", "_counts", "of"):
            vars(self).pop(name, None)

    @cached_property
    def _lines(self) -> tuple[LineValues, LineValues]:
        """The values of lines as the functions are in force, and those of another dy."""
        lines, other = (self.trials.line_values(self.pieces, draw) for draw in (0, 1))
        for function, call in (own for piece in self.pieces for own in piece.regions):
            for line in (each for each in ast.walk(function) if each in lines.results):
                call.results.update(results_of(line, lines.results[line][-1]))
        return lines, other

    @cached_property
    def _counts(self) -> dict[ast.AST, float]:
        counts = self._judged(self._lines[0].values, {})
        return counts if self._raising is None else counts | {self._raising: _DEPARTING}

    @cached_property
    def of(self) -> dict[ast.AST, bool]:
        return {line: count < _DEPARTING for line, count in self._counts.items()}

    def _judged(self, values: Made, known: Mapping[ast.AST, float]) -> dict[ast.AST, float]:
        """The words that each line counts of which the values are not too plain.

        known: those of the lines that make what they made before.
        """
        found: dict[ast.AST, float] = {}
        for line, made in values.items():
            if known and is_equal(made, self._lines[0].values.get(line, [])):
                count = known.get(line)
            else:
                count = self._most(line, made)
            if count is not None:
                found[line] = count
        return found

    def _most(self, line: ast.stmt, made: list[np.ndarray]) -> float | None:
        """The words that the worst of the arrays that a line makes counts."""
        most: float | None = None
        for each in made:
            if (count := self._count(line, each)) is not None:
                most = count if most is None else max(count, most)
                if most >= _DEPARTING:
                    break
        return most

    def _is_of_dy(self, line: ast.AST) -> bool:
        """Return whether a line's values are others for another dy.

        A value of forward is right by chance more often, as 1 − y is.
        """
        own, others = (lines.values.get(line, []) for lines in self._lines)  # type: ignore[call-overload]
        return not _is_alike(own, others)

    def is_right(self, line: ast.AST) -> bool:
        """Return whether a line makes right values, and those that it is called after."""
        return self._counts.get(line) == 0.0

    def in_order(self) -> Iterator[tuple[ast.stmt, bool]]:
        """The lines as they are run, round by round, and whether all is right that each makes."""
        for line, made in groupby(self._lines[0].made, key=lambda each: each[0]):
            count = self._most(line, [each for _, each in made])
            if count is not None:
                yield line, count < _DEPARTING

    def _count(self, line: ast.stmt, value: np.ndarray) -> float | None:
        own = line.targets if isinstance(line, ast.Assign) else []
        name = called(own[0]) if len(own) == 1 else ""
        is_right = self.derived.judged(value, name, is_copy=is_copy(line))
        if not is_right:
            return None if is_right is None else _DEPARTING
        is_other = any(self.derived.called(name)) and not self.derived.is_called(value, name)
        return _MISCALLED * is_other

    def after(self, change: Change, piece: CodePiece) -> tuple[float, bool]:
        """The words that all lines count with a change, which tell equivalent ones apart.

        And whether it makes its own line right, which was not. What is wrong in no line once one is
        changed was wrong in that: a change further on leaves the lines before it as they depart,
        and one of a line that is right makes it another.
        """
        try:
            with _on_its_line(change).made():
                code = piece.compiled()
            with piece.in_force(code):
                values: Made = self.trials.line_values(self.pieces).values
        except Exception:
            return sum(self._counts.values()), False
        counts = self._judged(values, self._counts)
        own: Any = change.statement
        # A line that is run no more, for it is in another branch, is as wrong as it was.
        known = {own: 0.0} | counts
        still = {line: known.get(line, count) for line, count in self._counts.items() if count}
        departs, settles = still.get(own, 0.0) >= _DEPARTING, own in still and not counts.get(own)
        was_right = self.is_right(own) and self._is_of_dy(own)
        moved = was_right and not _is_alike(self._lines[0].values[own], values.get(own, []))
        whole = sum(still.values()) + _MOVED * moved + _OWN * departs
        return whole, settles


def _on_its_line(change: Change) -> Change:
    """The same without the lines that its parts are taken from, which would seem to be run."""
    new = copy.deepcopy(change.new)
    for each in ast.walk(new) if isinstance(new, ast.expr) else ():
        if isinstance(each, ast.expr):
            each.lineno = each.end_lineno = change.statement.lineno
            each.col_offset = each.end_col_offset = 0
    return replace(change, new=new)


def _is_alike(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    """Return whether arrays are the same but for rounding, in shape too."""
    pairs = [*zip(some, others, strict=False)]
    shapes = all(one.shape == other.shape for one, other in pairs)
    return len(some) == len(others) and shapes and all(np.allclose(*pair) for pair in pairs)
