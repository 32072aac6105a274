"""The source of a function, also of one that was given to Python as `python -c PROGRAM`.

Python's own prompt keeps what was typed from 3.13 on, and IPython and notebooks always do.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Final

#: The name that code has of `python -c`, and of `exec`.
_COMMAND: Final = "<string>"
_BECAUSE: Final = {
    _COMMAND: ", because exec made it",
    "<stdin>": ", because it was typed at Python's prompt",
}


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
