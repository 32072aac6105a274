"""The tables that the families fill: NumPy's signatures, and the functions that are always traced.

A signature takes nodes, sizes and Python's values as NumPy takes arrays, and gives nodes back.
"""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from handgrad.program.node import world

Signature = TypeVar("Signature", bound=Callable[..., Any])

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
CREATION: set[Any] = set()  # traced without a traced operand, so that sizes keep their letters


class Refused(Exception):
    """The forward can't be read: the line, the reason and, where there is one, a line instead."""


def refuse(reason: str, instead: str = "") -> NoReturn:
    """Ends the trace in one sentence that begins with the user's line."""
    raise Refused(f"line {world().line}: {reason}" + (f"; write {instead}" if instead else ""))


def known(*functions: Any) -> Callable[[Signature], Signature]:
    """Registers a signature for some functions of NumPy or SciPy."""

    def keep(signature: Signature) -> Signature:
        FUNCTIONS.update(dict.fromkeys(functions, signature))
        return signature

    return keep


def creation(*functions: Any) -> Callable[[Signature], Signature]:
    """Registers a signature for functions that make arrays from sizes."""
    CREATION.update(functions)
    return known(*functions)
