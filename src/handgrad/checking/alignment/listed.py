"""The changes of a target's functions, by their size."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import product, takewhile
from typing import Final

from handgrad.checking.alignment.borrowing import Borrowed
from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.generators import changes
from handgrad.checking.alignment.hits import Sized
from handgrad.checking.alignment.pieces import CodePiece
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.standing import Standing
from handgrad.checking.alignment.unused import takes_in
from handgrad.checking.alignment.words import SourceWords
from handgrad.checking.work import CHANGE, Work

#: The words that a change counts more at a line that makes right values already.
_RIGHT: Final = 3.0


class SizedChanges:
    """Those of some functions; `listed` keeps those of each, until it is changed."""

    def __init__(
        self,
        pieces: Sequence[CodePiece],
        borrowed: Borrowed,
        standing: Standing | None,
        work: Work,
    ) -> None:
        self.pieces, self.borrowed, self.standing, self.work = pieces, borrowed, standing, work
        self.listed: dict[CodePiece, list[Sized]] = {}

    def by_size(self, *, forward: bool) -> list[Sized]:
        """All of backward's, or of forward's, the smallest first."""
        is_one = all(piece.in_forward for piece in self.pieces)
        own = [each for each in self.pieces if (each.in_forward and not is_one) == forward]
        with self.work.hurried(1), self.work.hurried(2):  # kept for later shares: half of all left
            for piece in own:
                if piece not in self.listed:
                    every = takewhile(lambda _: not self.work.over(), self._sized([piece]))
                    self.listed[piece] = list(every)
        return sorted((each for piece in own for each in self.listed[piece]), key=_size)

    def of(
        self,
        own: Sequence[CodePiece],
        only: Container[ast.AST] | None = None,
        *,
        weighed: bool = True,
    ) -> list[Sized]:
        """Those of some lines, and those at lines that make right values later where `weighed`."""
        return sorted(self._sized(own, only, weighed=weighed), key=_size)

    def _sized(
        self,
        own: Sequence[CodePiece],
        only: Container[ast.AST] | None = None,
        *,
        weighed: bool = True,
    ) -> Iterator[Sized]:
        known = SourceWords()
        for piece, inserted in product(own, (False, True)):
            for change in changes(piece, self.borrowed, inserted=inserted, only=only):
                self.work.take(CHANGE)
                more = _RIGHT * (weighed and self._is_right(change))
                yield size_of(change, known) + more, change, piece

    def _is_right(self, change: Change) -> bool:
        """Return whether the line of a change makes right values as it is."""
        return self.standing is not None and self.standing.is_right(change.statement)

    def stores(self) -> Iterator[Sized]:
        """Lines that write into an array of backward's, or update one by what it never uses."""
        known = SourceWords()
        for piece in (each for each in self.pieces if not each.in_forward):
            for function, call in piece.regions:
                for change in self.borrowed.stores.changes(CallScope(function, call)):
                    yield size_of(change, known), change, piece

    def taking_in(self, names: Mapping[CodePiece, frozenset[str]]) -> Iterator[Sized]:
        """The changes of backward that read one of these variables of their piece."""
        for size, change, piece in self.by_size(forward=False):
            if takes_in(change, names.get(piece, frozenset())):
                yield size, change, piece


def _size(each: Sized) -> float:
    return each[0]
