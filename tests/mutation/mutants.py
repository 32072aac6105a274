"""Small wrong changes to the source: one operator, sign, index or constant of the mathematics."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple


class Mutant(NamedTuple):
    """`found` at `offset` in the text of `file` becomes `changed`."""

    file: Path
    offset: int
    found: str
    changed: str

    def text(self) -> str:
        """The whole file with the change."""
        text = self.file.read_text("utf-8")
        end = self.offset + len(self.found)
        assert text[self.offset : end] == self.found
        return text[: self.offset] + self.changed + text[end:]

    def describe(self, root: Path) -> str:
        """File, line number, and the line before and after, as a reader finds them."""
        text = self.file.read_text("utf-8")
        line = text.count("\n", 0, self.offset) + 1
        before, after = text.splitlines()[line - 1], self.text().splitlines()[line - 1]
        return f"{self.file.relative_to(root)}:{line}: {before.strip()}  ->  {after.strip()}"


_OPERATORS: Final = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}
_COMPARISONS: Final = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
}


def of_python(file: Path) -> Iterator[Mutant]:
    """Every mutant of the functions of a Python file, but not of what only words an error."""
    text = file.read_text("utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines()

    def offset(line: int, column: int) -> int:
        # ast counts columns in bytes.
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def between(left: ast.expr, right: ast.expr, sign: str) -> int:
        end = offset(left.end_lineno or 0, left.end_col_offset or 0)
        return text.index(sign, end, offset(right.lineno, right.col_offset))

    def visit(node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.arguments):
            return
        if isinstance(node, ast.FunctionDef):
            if not node.name.startswith(("check_", "validate", "__repr__")):
                for statement in node.body:
                    yield from visit(statement)
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from visit(node.value)
            return
        if isinstance(node, ast.If) and all(isinstance(each, ast.Raise) for each in node.body):
            return
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            found, changed = _OPERATORS[type(node.op)]
            yield Mutant(file, between(node.left, node.right, found), found, changed)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield Mutant(file, offset(node.lineno, node.col_offset), "-", "+")
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
            found, changed = _COMPARISONS[type(node.ops[0])]
            yield Mutant(file, between(node.left, node.comparators[0], found), found, changed)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            at = offset(node.lineno, node.col_offset)
            found = text[at : offset(node.end_lineno or 0, node.end_col_offset or 0)]
            yield Mutant(file, at, found, _other_constant(node.value))
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            yield from visit(node)
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield from visit(member)


def _other_constant(value: float | bool) -> str:
    if isinstance(value, bool):
        return str(not value)
    return str(value + 1) if isinstance(value, int) else repr(value * 1.5 + 0.25)


_CPP: Final = [
    (re.compile(r"(?<=[\w)\]] )\+(?= [\w(])"), "-"),
    (re.compile(r"(?<=[\w)\]] )-(?= [\w(])"), "+"),
    (re.compile(r"(?<=[\w)\]] )\*(?= [\w(])"), "+"),
    (re.compile(r"(?<=[\w)\]] )\+=(?= )"), "-="),
    (re.compile(r"(?<=[\w)\]] )-=(?= )"), "+="),
    (re.compile(r"(?<=[\w)\]] )<(?= [\w(])"), "<="),
    (re.compile(r"(?<=[\w)\]] )>(?= [\w(])"), ">="),
    (re.compile(r"(?<=T\()-?\d+(?:\.\d+)?(?=\))"), "3"),
]
_CPP_INDEX: Final = re.compile(r"(?<=\[)\d+(?=\])")
#: A declared array: a larger one is no mistake.
_DECLARED: Final = re.compile(r"^\s*(?!return\b)(const )?[\w:<>]+ \w+\[\d+\]( = \{|;)")
#: KernelScope is told how much work there is, which decides only how many threads share it.
_NOT_MATHS: Final = re.compile(
    r"^\s*(//|#|template|static_assert|throw|m\.def|bind)|constexpr|KernelScope|\""
)


def of_cpp(file: Path) -> Iterator[Mutant]:
    """Every mutant of a C++ file's statements, with the layout that clang-format gives them."""
    offset = 0
    for line in file.read_text("utf-8").splitlines(keepends=True):
        code = line.partition("//")[0]
        if not _NOT_MATHS.search(code):
            for pattern, changed in _CPP:
                for match in pattern.finditer(code):
                    if match[0] != changed:
                        yield Mutant(file, offset + match.start(), match[0], changed)
            indices = () if _DECLARED.search(code) else _CPP_INDEX.finditer(code)
            for match in indices:
                yield Mutant(file, offset + match.start(), match[0], str(int(match[0]) + 1))
        offset += len(line)
