"""Changes that put gradients right."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.unused import unused
from handgrad.checking.alignment.variants import names_in, written_into
from handgrad.checking.alignment.written import WrittenDiff

#: A change with its size and the function that it is made in.
Sized = tuple[float, Change, CodePiece]


@dataclass(eq=False)
class Hit:
    """A change that puts gradients right, with the edit of the source that it is.

    words: those that change. size: the same, and what the lines count that are not right with it.
    """

    change: Change
    piece: CodePiece
    covers: tuple[str, ...]
    written: WrittenDiff | None
    words: float
    size: float

    @property
    def rank(self) -> tuple[float, float, bool, bool, bool, bool, int]:
        text = self.written
        longer = 0 if text is None else len(text.line) - len(" ".join(text.before))
        is_alone = not is_of_name(self.change)
        size = round(self.size) + self.piece.in_forward + is_alone + self.forgets
        gives_back = isinstance(self.change.statement, ast.Return)
        late = (self.forgets, is_alone, self._is_late, gives_back)
        return -len(self.covers), size, *late, longer

    @cached_property
    def forgets(self) -> bool:
        """Return whether the change leaves a variable that is computed for nothing."""
        before = unused(self.piece.tree)
        with self.change.made():
            return not unused(self.piece.tree) <= before

    @property
    def drops(self) -> bool:
        """Return whether the change no longer reads an array that other lines write into.

        The fault is in one of them then.
        """
        stored = written_into(self.piece.tree)
        return bool(stored & names_in(self.change.place.get()) - names_in(self.change.new))

    @property
    def _is_late(self) -> bool:
        """Return whether a variable gains what the line that sets it may lack as well."""
        own = self.change.place.get()
        if not isinstance(own, ast.Name) or not isinstance(self.change.new, ast.AST):
            return False
        is_gain = any(each is own for each in ast.walk(self.change.new))
        return is_gain and own.id in names_in(self.piece.tree, ast.Store)


def is_of_name(change: Change) -> bool:
    """Return whether a line that only gives a variable another name gains what it was set for.

    Another sign is nothing that is gained.
    """
    match change.statement:
        case ast.Assign([ast.Name()], ast.Name() as own) if own is change.place.get():
            new = change.new
            if isinstance(new, ast.AST) and not isinstance(new, ast.UnaryOp):
                return any(each is own for each in ast.walk(new))
    return False


def adds_number(change: Change) -> bool:
    """Return whether a number is added to what stands there, or taken from it."""
    match change.new:
        case ast.BinOp(own, ast.Add() | ast.Sub(), ast.Constant()):
            return own is change.place.get()
    return False
