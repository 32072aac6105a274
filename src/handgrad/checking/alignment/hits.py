"""Changes that put gradients right."""

from __future__ import annotations

from dataclasses import dataclass

from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.written import WrittenDiff

#: A change with its size and the function that it is made in.
Sized = tuple[float, Change, CodePiece]


@dataclass(eq=False)
class Hit:
    """A change that puts gradients right, with the edit of the source that it is.

    words: those that change. size: the same, less where the line's values become right ones, which
    they were not, and more where they were right before.
    """

    change: Change
    piece: CodePiece
    covers: tuple[str, ...]
    written: WrittenDiff | None
    words: float
    size: float

    @property
    def rank(self) -> tuple[float, float, int]:
        text = self.written
        longer = 0 if text is None else len(text.line) - len(" ".join(text.before))
        return -len(self.covers), round(self.size), longer
