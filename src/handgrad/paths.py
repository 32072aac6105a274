"""Paths as users give them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from handgrad.errors import ArgumentError, DataError
from handgrad.escaping import cut

StrPath = str | os.PathLike[str]


class _NoPathError(ArgumentError, DataError):
    """A path that is none: a wrong argument, and a file that is not there for whoever reads it."""


def as_path(name: str, given: Any) -> Path:
    """The path a user gave, `~` replaced. Raises ArgumentError where it is none, or is empty."""
    try:
        # An empty one would be the working folder, and no system has names with NUL.
        if given != "" and "\0" not in str(given):
            return Path(given).expanduser()
    except (TypeError, RuntimeError):  # the latter for the home of a user who is unknown
        pass
    found = str(given) if isinstance(given, Path) else given
    raise _NoPathError(
        f"{name}: path is {cut(repr(found), 120)}; allowed: the path of a file or folder"
    )
