"""The source of a function, also of one that was given to Python as `python -c PROGRAM`.

Python's own prompt keeps what was typed from 3.13 on, and IPython and notebooks always do.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
import textwrap
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Final, NamedTuple

#: The name that code has of `python -c`, and of `exec`.
_COMMAND: Final = "<string>"
_BECAUSE: Final = {
    _COMMAND: ", because exec made it",
    "<stdin>": ", because it was typed at Python's prompt",
}
#: Not its own name, which in a function that calls itself is a global one.
_FUNCTION: Final = "__function__"


def nested(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def source_lines(function: FunctionType | CodeType) -> tuple[list[str], int]:
    """The lines of a function and the number of the first. Raises OSError where there are none."""
    code = function if isinstance(function, CodeType) else function.__code__
    if code.co_filename == _COMMAND and code in _commanded():
        text = _command()
        linecache.cache[_COMMAND] = (len(text), None, text.splitlines(keepends=True), _COMMAND)
    return inspect.getsourcelines(function)


class Definition(NamedTuple):
    """A function's statement, the text of its source, and the lines of the file before it."""

    tree: ast.stmt
    text: str
    before: int


def definition(code: CodeType) -> Definition | None:
    """The statement that a function's code comes from; None where there is no source."""
    try:
        lines, first = source_lines(code)
        text = textwrap.dedent("".join(lines))
        return Definition(ast.parse(text).body[0], text, max(first, 1) - 1)
    except (OSError, TypeError, SyntaxError):
        return None


def recompiled(
    known: Definition, code: CodeType, owner: str, outer: Iterable[str] = ()
) -> CodeType:
    """The code of a function written with def of which the statements have changed.

    `owner` is the class that it belongs to, whose private names it has, or empty. It may read the
    names in `outer` as it reads those of its closure.
    """
    tree = known.tree
    assert isinstance(tree, ast.FunctionDef)
    tree.name, tree.decorator_list, tree.returns = _FUNCTION, [], None
    for each in ast.walk(tree.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    names = dict.fromkeys((*code.co_freevars, *outer))
    # A method that makes another object of its class means the one of the module.
    lines = [f"global {owner}"] * (owner not in names) + [f"class {owner}: pass"]
    around = ast.parse("\n    ".join(["def around():", *(lines if owner else ["pass"])])).body[0]
    assert isinstance(around, ast.FunctionDef)
    around.args.args = [ast.arg(each) for each in names]
    home = around.body[-1] if isinstance(around.body[-1], ast.ClassDef) else around
    home.body = [tree]
    # A node that a change has put in two places is moved to the lines of the file once.
    for node in {id(each): each for each in ast.walk(tree)}.values():
        for line in ("lineno", "end_lineno"):
            if (number := getattr(node, line, None)) is not None:
                setattr(node, line, number + known.before)
    module = ast.fix_missing_locations(ast.Module([around], []))
    whole = compile(module, code.co_filename, "exec", dont_inherit=True)
    found = next(each for each in nested(whole) if each.co_name == _FUNCTION)
    return found.replace(co_name=code.co_name)


def owner_of(function: str) -> str:
    """The class of a method by the method's qualified name; empty where it has none."""
    *_, owner, _ = ("", *function.split("."))
    return owner if owner.isidentifier() else ""


def unreadable(code: CodeType) -> str:
    """Why the source of this code is not there, and what makes it be there."""
    because = _BECAUSE.get(code.co_filename, "")
    return (
        f"the source of {code.co_name} cannot be read{because}; allowed: functions in files; write "
        "it to a file, such as mine.py, and import it from there"
    )


def _command() -> str:
    """The program that follows `-c` on Python's command line; empty where there is none."""
    place = len(sys.orig_argv) - len(sys.argv)
    is_command = bool(sys.argv) and sys.argv[0] == "-c" and place > 0
    return sys.orig_argv[place] if is_command else ""


@functools.cache
def _commanded() -> frozenset[CodeType]:
    """The codes of all functions in that program: one that `exec` made is none of them."""
    try:
        return frozenset(nested(compile(_command(), _COMMAND, "exec", dont_inherit=True)))
    except SyntaxError:
        return frozenset()
