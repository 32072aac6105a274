"""Functions and classes that a comment marks to be checked, and the files that Git says changed.

# handgrad: check --shape x=5,3 --shape w=3,4
def affine_forward(x, w):
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handgrad.cli.requests import Request, request_of
from handgrad.errors import ArgumentError, DataError
from handgrad.targets import PAIRS, partners

_MARK: Final = re.compile(r"\s*#\s*handgrad:\s*check\b(?P<options>.*)")


@dataclass(frozen=True)
class Marked:
    """A function or class with a backward; its options are None where it is not marked."""

    file: Path
    name: str
    line: int
    options: str | None

    @property
    def target(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def request(self) -> Request:
        return request_of(self.target, self.options or "")


def found_in(file: Path) -> list[Marked]:
    """What is marked in a file, and what has a backward and no mark; none of a broken file."""
    try:
        # Here and not above, where every command would load what reads data.
        from handgrad.data.files import read_utf8

        text = read_utf8(file)
        tree = ast.parse(text)
    except (DataError, SyntaxError, ValueError):
        return []
    lines = text.splitlines()
    known = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    found = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        options = _mark_above(node, lines)
        if options is not None or _has_backward(node, known):
            found.append(Marked(file, node.name, node.lineno, options))
    return found


def _mark_above(node: ast.FunctionDef | ast.ClassDef, lines: Sequence[str]) -> str | None:
    """The options in the comments right above a definition and its decorators."""
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    for line in reversed(lines[: first - 1]):
        if (match := _MARK.fullmatch(line)) is not None:
            return match["options"].strip()
        if not line.lstrip().startswith("#"):
            return None
    return None


def _has_backward(node: ast.FunctionDef | ast.ClassDef, known: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        return any(each in known for each in partners(node.name))
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return any({one, other} <= methods for one, other in PAIRS)


def changed_files(since: str | None) -> list[Path]:
    """The Python files that differ from a commit, else from the last one, and those that are new.

    Raises ArgumentError where this is no Git repository, or there is no such commit.
    """
    root = Path(_git("rev-parse", "--show-toplevel").strip())
    base = ("--merge-base", since) if since is not None else ("HEAD",)
    listed = _git(
        "-C", str(root), "diff", "--name-only", "--diff-filter=d", "-z", *base, "--", "*.py"
    )
    new = _git("-C", str(root), "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py")
    here = Path.cwd()
    paths = [root / name for name in dict.fromkeys(f"{listed}{new}".split("\0")) if name]
    return [each.relative_to(here) if each.is_relative_to(here) else each for each in paths]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, check=True, encoding="utf-8"
        )
    except OSError:
        raise ArgumentError("check: --changed asks Git, which is not here") from None
    except subprocess.CalledProcessError as error:
        first = (error.stderr.strip().splitlines() or ["no message"])[0]
        raise ArgumentError(
            f"check: --changed: Git says {first!r}; allowed: a repository, and --since a commit"
        ) from None
    return done.stdout


def unmarked(found: Sequence[Marked]) -> Iterator[str]:
    """A sentence for every one that is not marked."""
    for each in found:
        if each.options is None:
            yield (
                f"{each.target} has a backward and no inputs; allowed: a line "
                f"`# handgrad: check --shape ...` above it"
            )
