"""A change of the tree as a change of the text, that means the same: a diff of few lines."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass

from handgrad.checking.alignment.changes import Change, text_of
from handgrad.checking.alignment.pieces import CodePiece


@dataclass(frozen=True)
class WrittenDiff:
    """The lines of a file that change, before and after."""

    first: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def line(self) -> str:
        """The new text, on one line."""
        return " ".join(each.strip() for each in self.after) or "nothing"

    @property
    def diff(self) -> str:
        """The change as a unified diff without context."""
        removed = [f"-{line}" for line in self.before]
        added = [f"+{line}" for line in self.after]
        head = f"@@ -{self.first},{len(removed)} +{self.first},{len(added)} @@"
        return "\n".join([head, *removed, *added])


def written(change: Change, piece: CodePiece) -> WrittenDiff | None:
    """The text of a change, None where no text that is tried means the same."""
    lines = [line.rstrip("\n") for line in linecache.getlines(piece.code.co_filename)]
    old, statement = change.place.get(), change.statement
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    whole = "\n".join(lines[first - 1 : last])
    with change.made():
        wanted = change.place.get() if isinstance(old, ast.stmt) else statement
        meant = _meaning(wanted)
        own = text_of(wanted)
    texts = []
    if isinstance(old, ast.expr) and isinstance(change.new, ast.AST) and not change.others:
        texts = [_spliced(whole, first, old, new) for new in _forms(change.new)]
    for text in texts:
        if text is not None and _means(text, meant, statement):
            after = text.split("\n")
            break
    else:
        inside = {id(each) for each in ast.walk(statement)}
        is_block = isinstance(statement, ast.For | ast.If | ast.With | ast.Lambda)
        if (is_block and not isinstance(old, ast.stmt)) or any(
            id(place.parent) not in inside for place, _ in change.others
        ):
            return None
        indent = lines[first - 1].encode()[: statement.col_offset].decode()  # `def f(x):` too
        after = [f"{indent}{line}" for line in (own or "pass").split("\n")]
    before = lines[first - 1 : last]
    while before and after and before[0] == after[0] and len(before) == len(after) > 1:
        before, after, first = before[1:], after[1:], first + 1
    while before and after and before[-1] == after[-1] and len(before) == len(after) > 1:
        before, after = before[:-1], after[:-1]
    return WrittenDiff(first, tuple(before), tuple(after))


def _forms(new: ast.AST) -> list[str]:
    text = ast.unparse(new)
    bare = [text[1:-1]] if isinstance(new, ast.Tuple) and len(new.elts) > 1 else []
    return [*bare, text, f"({text})"]


def _spliced(whole: str, first: int, old: ast.expr, new: str) -> str | None:
    """The statement's text with another expression in it."""
    if old.end_lineno is None or old.end_col_offset is None:
        return None
    rows = [row.encode() for row in whole.split("\n")]
    start, end = old.lineno - first, old.end_lineno - first
    if not 0 <= start <= end < len(rows):
        return None
    joined = rows[start][: old.col_offset] + new.encode() + rows[end][old.end_col_offset :]
    return b"\n".join([*rows[:start], joined, *rows[end + 1 :]]).decode()


def _meaning(node: ast.AST) -> str:
    """Equal for texts that mean the same."""
    return ast.unparse(node)


def _means(text: str, meant: str, statement: ast.stmt | ast.Lambda) -> bool:
    """Return whether a statement's text is that of a tree."""
    if isinstance(statement, ast.Lambda):
        return meant.split(":", 1)[-1].strip() in text
    lines, indent = text.split("\n"), statement.col_offset
    try:
        tree = ast.parse("\n".join(line[indent:] for line in lines))
    except SyntaxError:
        return False
    return len(tree.body) == 1 and _meaning(tree.body[0]) == meant
