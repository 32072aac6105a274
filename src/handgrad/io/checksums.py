"""Files of a run, with a checksum in them that covers every byte.

A checksum is the SHA-256 of the file in which the 64 digits of the checksum itself are zeros. So it
can stand inside the file, which stays one file that is replaced in one step:

    config.toml, as a comment in its last line      # ... sha256 3f5a...
    summary.json, as its last field                 "sha256": "3f5a..."
    *.safetensors, in the metadata of its header    "sha256":"3f5a..."

Functions here raise OSError where the system fails; `Run` makes a sentence of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from handgrad.writing import BINARY, OWN, Content, not_regular

#: The digits before the checksum is known.
BLANK: Final = b"0" * 64
_DIGITS: Final = re.compile(rb"[0-9a-f]{64}")

_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{16}\.partial")


def digest(parts: Iterable[Content]) -> str:
    """The SHA-256 of these bytes, one after the other, in hexadecimal."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def with_checksum(content: Content, marker: bytes, end: int | None = None) -> list[Content]:
    """`content` in parts, its checksum in the place of `BLANK` behind the last `marker`.

    end: where the search for the marker ends; by default the whole content is searched.
    """
    at = _position(content, marker, end)
    assert at is not None
    view = memoryview(content)
    return [view[:at], digest([content]).encode(), view[at + len(BLANK) :]]


def read_checksum(content: Content, marker: bytes, end: int | None = None) -> tuple[str, str]:
    """The checksum that `content` has behind the last `marker`, "" where there is none, and the
    one that it should have."""
    at = _position(content, marker, end)
    if at is None:
        return "", digest([content])
    view = memoryview(content)
    rest = at + len(BLANK)
    return bytes(view[at:rest]).decode(), digest([view[:at], BLANK, view[rest:]])


def _position(content: Content, marker: bytes, end: int | None) -> int | None:
    at = bytes(memoryview(content)[:end]).rfind(marker)
    if at < 0 or not _DIGITS.match(bytes(memoryview(content)[at + len(marker) :][: len(BLANK)])):
        return None
    return at + len(marker)


def read_whole(path: Path, *, follow: bool = False) -> bytes:
    """The bytes of a file. Raises OSError also for what is no file, such as a pipe or a folder.

    A symbolic link is none either, unless `follow`.
    """
    if not follow and os.path.islink(path):
        raise not_regular(path)
    waiting = getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | BINARY | waiting)
    try:
        check_file(descriptor, path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def check_file(descriptor: int, path: Path) -> None:
    """Raise OSError unless the descriptor is that of a regular file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise not_regular(path)


def open_own(path: Path, flags: int) -> int:
    """A descriptor of a file of the run, made where it is missing, not through a symbolic link."""
    waiting = getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | os.O_CREAT | OWN | BINARY | waiting, 0o666)
    try:
        check_file(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_temporary(folder: Path) -> None:
    """Remove what a killed process had begun to write in `folder`."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
