"""An exception that nobody foresaw: one line on stderr, and a file with all that explains it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from importlib.metadata import PackageNotFoundError, version
from typing import Final

#: The exit code of a fault of handgrad itself: EX_SOFTWARE of sysexits.h.
FAULT: Final = 70
#: The beginning of a report's name.
PREFIX: Final = "handgrad-"
_LIBRARIES: Final = ("handgrad", "numpy", "rich", "typer")


def report(error: BaseException) -> str:
    """The sentence for an exception, whose traceback is written to a file that the sentence names.

    The file is new and readable by its owner alone, because arguments may be private.
    """
    try:
        handle, path = tempfile.mkstemp(".txt", PREFIX)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(_text(error))
        place = f"the report is in {path}"
    except OSError as failed:
        place = f"no report could be written: {failed.strerror or failed}"
    return f"a fault of handgrad, {_named(error)}; {place}"


def _named(error: BaseException) -> str:
    """The exception in the last line of its traceback, cut where it is long."""
    line = " ".join("".join(traceback.format_exception_only(error)).split())
    return line if len(line) <= 200 else f"{line[:200]}…"


def _text(error: BaseException) -> str:
    versions = "\n".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    return (
        f"{versions}\nPython {sys.version} on {platform.platform()}\n"
        f"arguments: {sys.argv!r}\n\n{''.join(traceback.format_exception(error))}"
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
