"""config.toml: the settings of a run, sealed by a last line with its name and a checksum."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from handgrad.errors import RunError
from handgrad.io.checkpoint import changed
from handgrad.io.checksums import BLANK, read_checksum, with_checksum
from handgrad.writing import Content

#: The start of the config.toml of a run that a program started.
PROGRAM_CONFIG: Final = "[trainer]"
#: Begins a line that records a change.
_CHANGED: Final = "# changed "
_LAST_LINE: Final = "# The run {run} wrote this file; sha256 {sha256}\n"
_WRITTEN: Final = re.compile(r"# The run ([0-9a-f]{32}) wrote this file; sha256 [0-9a-f]{64}")
_MARKER: Final = b"wrote this file; sha256 "


def sealed(path: Path, text: str, run: str) -> list[Content]:
    """The content of config.toml in three parts, of which the second is the checksum.

    run: the name that the files of the run have for it. Raises RunError for text that is no
    Unicode.
    """
    if text and not text.endswith("\n"):
        text += "\n"
    try:
        content = (text + _LAST_LINE.format(run=run, sha256=BLANK.decode())).encode()
    except UnicodeEncodeError as error:
        raise RunError(
            f"{path}: a setting has {error.object[error.start]!r}, which is not Unicode; allowed: "
            "names and paths in UTF-8"
        ) from None
    return with_checksum(content, _MARKER)


def unsealed(path: Path, content: bytes, advice: str) -> tuple[str, str, str]:
    """The text without its last line, the name of the run, and the checksum.

    Raises RunError, with `advice` at the end, where it was damaged or changed.
    """
    written, found = read_checksum(content, _MARKER)
    text, newline, last = content.decode(errors="replace").rstrip("\n").rpartition("\n")
    known = _WRITTEN.fullmatch(last)
    if written != found or known is None:
        raise RunError(f"{changed(path, written, found)}{advice if written else ''}")
    return text + newline, known[1], found


def with_change(old: str, new: str, change: str) -> str:
    """The new text with a line that records the change, after those of the old text."""
    lines = [line for line in old.splitlines() if line.startswith(_CHANGED)]
    lines.append(_CHANGED + " ".join(change.split()))
    return new.rstrip("\n") + "\n" + "\n".join(lines) + "\n"


def is_of_program(text: str) -> bool:
    """Return whether a program started the run, so that its model and data stand there."""
    return f"\n{PROGRAM_CONFIG}\n" in f"\n{text}"
