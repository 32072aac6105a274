"""One representation under the checker, the notes and the derivations: what a function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handgrad.program.nodes import (
    Assignment,
    Branch,
    Frame,
    Node,
    Program,
    ProgramError,
    Round,
    Site,
    leaves,
    mapped,
    reachable,
    values_of,
)
from handgrad.program.recorder import Recorder

__all__ = [
    "Assignment",
    "Branch",
    "Frame",
    "Node",
    "Program",
    "ProgramError",
    "Recorder",
    "Round",
    "Site",
    "leaves",
    "mapped",
    "reachable",
    "recorded",
    "values_of",
]


def recorded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Program:
    """The program of one call of a function, which has the same bits as the call itself.

    The arguments are as the function takes them. A dispatched op is traced as its reference.
    Raises what the function raises.
    """
    return Recorder().run(function, *args, **kwargs)
