"""What cannot be derived is refused: with the line, the reason, and what to write instead."""

from __future__ import annotations

from typing import Any

from handgrad.errors import ArgumentError


class UnreadableError(ArgumentError):
    """A forward of which no derivation can be made: its line, and why."""


class ByChanceError(UnreadableError):
    """It cannot be made on these lengths, of which one has a derived length of 1 by chance."""


class UnprovedError(Exception):
    """A derivation did not stand its proof; nothing of it is returned.

    setting: the path of the setting at whose other value it did not. is_rough: the differences of
    the forward told nothing there, because no two of them were alike. array: the one of several
    along which they told nothing.
    """

    setting: tuple[str | int, ...] = ()
    is_rough = False
    array = ""


def refused(why: str, function: Any, allowed: str = "a forward without it") -> UnreadableError:
    """The error for a reason, which names its line or has that of the function's definition."""
    where = "" if why.startswith("line ") else f"{of_function(function)}: "
    text = " ".join(f"derive: {where}{why}".split()).replace("; write ", "; allowed: ")
    return UnreadableError(text if "; allowed: " in text else f"{text}; allowed: {allowed}")


def of_function(function: Any) -> str:
    """The line of a function's definition; of a module of PyTorch its class."""
    if hasattr(function, "paths"):
        return str(function.__name__)
    line = getattr(getattr(function, "__code__", None), "co_firstlineno", 0)
    return f"line {line}: def {getattr(function, '__name__', 'forward')}"
