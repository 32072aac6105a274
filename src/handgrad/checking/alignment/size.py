"""The size of a change in the source."""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from typing import Final

from handgrad.checking.alignment.changes import Change

_WORDS: Final = (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING)
#: Two brackets count as one word.
_BRACKET: Final = 0.5


def size_of(change: Change) -> float:
    """The number of words of the statement that change."""
    before = _words(change.statement)
    with change.made():
        now = change.place.get()
        after = _words(now if isinstance(now, ast.stmt) else change.statement)
    size = 0.0
    matcher = difflib.SequenceMatcher(None, before, after, False)
    for tag, i, j, m, n in matcher.get_opcodes():
        if tag != "equal":
            size += max(_weight(before[i:j]), _weight(after[m:n]))
    return size + 2.0 * len(change.others)


def _weight(words: list[str]) -> float:
    return sum(_BRACKET if word in "()" else 1.0 for word in words)


def _words(node: ast.AST) -> list[str]:
    """The words of a statement; of a loop or a condition those of its head."""
    if isinstance(node, ast.For):
        node = node.iter
    elif isinstance(node, ast.If):
        node = node.test
    text = ast.unparse(node)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return text.split()
    return [token.string for token in tokens if token.type in _WORDS]
