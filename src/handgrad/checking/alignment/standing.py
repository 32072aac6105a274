"""The lines of a backward by the values that they make: right ones, or others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.lines import LineValues, called, is_copy
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.pool import SweptForward
from handgrad.checking.alignment.trials import Trials
from handgrad.checking.alignment.variants import names_in

#: The part more that a right value counts in a variable that is called after it.
_CALLED: Final = 0.5
#: Fields of a statement that hold others.
_BLOCKS: Final = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


class Standing:
    """For each statement True where all it makes is right, False where something is not.

    A statement is not in `of` where its values are too plain to tell. A value that is not among
    the right ones need not be wrong, for there are many ways to a gradient.
    """

    def __init__(self, derived: SweptForward, trials: Trials, pieces: Sequence[CodePiece]) -> None:
        self.derived, self.trials, self.pieces = derived, trials, pieces
        #: called: statements of which the variable is called after what they make the gradient of.
        self.of, self.called = self._judged(trials.line_values(pieces))
        #: Lines of backward of which all that reads them makes right values: no fault is in them.
        self.settled = set(self._settled())
        self.of.update(dict.fromkeys(self.settled, True))

    def _judged(self, lines: LineValues) -> tuple[dict[ast.AST, bool], set[ast.AST]]:
        found: dict[ast.AST, bool] = {}
        as_called: set[ast.AST] = set()
        for statement, values in lines.values.items():
            own = statement.targets if isinstance(statement, ast.Assign) else []
            name, copies = called(own[0]) if len(own) == 1 else "", is_copy(statement)
            every = (self.derived.judged(each, name, is_copy=copies) for each in values)
            known = [told for told in every if told is not None]
            if any(self.derived.is_called(each, name) for each in values):
                as_called.add(statement)
            if known:
                found[statement] = all(known)
        return found, as_called

    def follows(self, statement: ast.AST) -> bool:
        """Return whether a line reads a variable that another line sets, and departs in."""
        departing = {
            target.id
            for line, right in self.of.items()
            if not right and line is not statement and isinstance(line, ast.Assign)
            for target in line.targets
            if isinstance(target, ast.Name)
        }
        return not departing.isdisjoint(names_in(statement, ast.Load))

    def _settled(self) -> Iterator[ast.AST]:
        """The lines that set a variable once which right lines alone read, the last ones first."""
        for piece in self.pieces:
            lines = [each for each in ast.walk(piece.tree) if isinstance(each, ast.stmt)]
            plain = [each for each in lines if not hasattr(each, "body")]
            # A value that is returned may be a right one of something else.
            told = [each for each in plain if not isinstance(each, ast.Return)]
            right = {each for each in told if self.of.get(each) is True}
            for line in sorted(plain, key=lambda each: -each.lineno):
                match line:
                    case ast.Assign([ast.Name(name)]) if not piece.in_forward:
                        uses = [each for each in lines if each is not line and _names(each, name)]
                        if uses and right.issuperset(uses) and self.of.get(line) is False:
                            right.add(line)
                            yield line

    def settles(self, change: Change, piece: CodePiece) -> float:
        """1 where a change makes the values of its line right, which they were not, else 0.

        More where they are those that its variable is called after.
        """
        if self.of.get(change.statement) is not False:
            return 0.0
        found, as_called = self._after(change, piece)
        is_right = found.get(change.statement, False)
        return is_right * (1.0 + _CALLED * (change.statement in as_called))

    def unsettles(self, change: Change, piece: CodePiece) -> bool:
        """Return whether a change leaves none of the right values that its line makes of dy.

        A value of forward is right by chance more often, as 1 − y is.
        """
        line = change.statement
        if self.of.get(line) is not True or line not in self._of_dy:
            return False
        return self._after(change, piece)[0].get(line) is False

    @cached_property
    def _of_dy(self) -> set[ast.AST]:
        """The lines that make other values of another cotangent."""
        one, other = (self.trials.line_values(self.pieces, draw).values for draw in (0, 1))
        pairs = {line: zip(one[line], other.get(line, []), strict=False) for line in one}
        return {line for line in one if not all(np.array_equal(*pair) for pair in pairs[line])}

    def _after(self, change: Change, piece: CodePiece) -> tuple[dict[ast.AST, bool], set[ast.AST]]:
        """The lines as they stand with a change; none where they run no more."""
        try:
            with change.made():
                code = piece.compiled()
            with piece.in_force(code):
                return self._judged(self.trials.line_values(self.pieces))
        except Exception:
            return {}, set()


def _names(line: ast.stmt, name: str) -> bool:
    """Return whether a line, or the head of a block, has a variable."""
    fields = (each for field, each in ast.iter_fields(line) if field not in _BLOCKS)
    parts = (each for own in fields for each in (own if isinstance(own, list) else [own]))
    return any(name in names_in(each) for each in parts if isinstance(each, ast.AST))
