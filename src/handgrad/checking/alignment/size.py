"""The size of a change in the source: the number of words that change."""

from __future__ import annotations

import ast
import difflib
from typing import Any, Final

from handgrad.checking.alignment.changes import Change
from handgrad.checking.alignment.words import SourceWords

#: Brackets, commas and dots are no words of their own.
_PUNCTUATION: Final = "()[]{},.:="
_SMALL: Final = 0.1


def size_of(change: Change, known: SourceWords) -> float:
    """The words that change, of the expression at the place or of the statement.

    known: the words of nodes of the tree as it stands, which many changes have parts of.
    """
    if change.words is not None:
        return change.words
    old = change.place.get()
    if change.others or isinstance(old, ast.stmt) or not isinstance(change.new, ast.AST):
        return _of_statements(change, old, known)
    around: Any = change.place.parent
    before, after = known.of(old), known.of(change.new)
    if isinstance(around, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Subscript | ast.Compare):
        before, after = _bracketed(old, before), _bracketed(change.new, after)
    size = _difference(before, after)
    # There is one way to leave a factor out, and many to make it do nothing.
    is_factor = change.kind == "extra factor" and isinstance(old, ast.BinOp)
    return min(size, _factors(old) - _factors(change.new)) if is_factor else size


def _factors(node: ast.AST) -> float:
    """The number of an expression's factors, and one for all that it is divided by."""
    match node:
        case ast.BinOp(left, ast.Mult() | ast.MatMult(), right):
            return _factors(left) + _factors(right)
        case ast.BinOp(left, ast.Div()):
            return _factors(left) + 1.0
        case ast.Constant(1 | 1.0):
            return 0.0
    return 1.0


def _of_statements(change: Change, old: Any, known: SourceWords) -> float:
    before = known.of(change.statement)
    if old is change.statement and not change.others:
        return _difference(before, known.of(change.new))
    with change.made():
        now = change.place.get()
        after = SourceWords().of(now if isinstance(now, ast.stmt) else change.statement)
    return _difference(before, after) + 2.0 * len(change.others) * isinstance(old, ast.stmt)


def _difference(before: list[str], after: list[str]) -> float:
    if not {*after} - {*before} and _only_words(before) == _only_words(after):
        return 1.0  # brackets that are elsewhere
    if set(before) <= set(after) and _goes_through(before, after):
        return _weight(after) - _weight(before)
    size = 0.0
    for tag, i, j, m, n in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if tag != "equal":
            size += max(_weight(before[i:j]), _weight(after[m:n]))
    return size


def _only_words(words: list[str]) -> list[str]:
    return [word for word in words if word not in _PUNCTUATION]


def _goes_through(before: list[str], after: list[str]) -> bool:
    """Return whether words are only added, which needs no matching."""
    words = iter(after)
    return all(word in words for word in before)


def _bracketed(node: ast.AST, words: list[str]) -> list[str]:
    """Words in the brackets that an expression mostly gets within another."""
    return ["(", *words, ")"] if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare) else words


def _weight(words: list[str]) -> float:
    return sum(_SMALL if word in _PUNCTUATION else 1.0 for word in words)
