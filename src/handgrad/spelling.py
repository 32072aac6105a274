"""Settings in the language of the place: options on the command line, keywords in Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_ON_COMMAND_LINE: Final[ContextVar[bool]] = ContextVar("_ON_COMMAND_LINE", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """Within it, settings are said as options."""
    token = _ON_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _ON_COMMAND_LINE.reset(token)


def setting(name: str) -> str:
    """The name of a setting: --target, or target=."""
    return f"--{name}" if _ON_COMMAND_LINE.get() else f"{name}="


def names_for(name: str, values: Sequence[str]) -> str:
    """A setting with the names of columns: --drop who,age, or drop=['who', 'age']."""
    if not _ON_COMMAND_LINE.get():
        return f"{name}={list(values)}"
    # In double quotes a comma belongs to the name, and in single ones a shell leaves both alone.
    cells = ",".join(f'"{each}"' if "," in each else each for each in values)
    return f"--{name} {cells}" if cells.replace(",", "").isalnum() else f"--{name} '{cells}'"
