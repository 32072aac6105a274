"""Where the user's files are, and their text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from handgrad.errors import DataError

StrPath = str | os.PathLike[str]


def find(name: str, path: StrPath | None, expected: str, folders: Iterable[str] = ()) -> Path:
    """The file or folder of the set `name`: `path`, or else where HANDGRAD_DATA points.

    Either may also be the folder above, with one folder for each set, named as the set or as one
    of `folders`. Raises DataError, with what is `expected`, where there is nothing.
    """
    given = path if path is not None else os.environ.get("HANDGRAD_DATA")
    if not given:
        raise DataError(
            f"{name}: no data given; expected --data PATH or HANDGRAD_DATA=PATH, where PATH is "
            f"{expected}"
        )
    place = Path(given).expanduser()
    if not place.exists():
        raise DataError(f"{place} does not exist; expected {expected}")
    inside = (place / folder for folder in (name, *folders))
    return next((folder for folder in inside if folder.is_dir()), place)


def find_file(
    name: str,
    path: StrPath | None,
    expected: str,
    patterns: Iterable[str],
    folders: Iterable[str] = (),
) -> Path:
    """The one file of the set `name`: found as in `find`; in a folder, the only one of `patterns`.

    Earlier patterns go before later ones. Raises DataError unless there is exactly one.
    """
    place = find(name, path, expected, folders)
    if not place.is_dir():
        return place
    for pattern in patterns:
        found = sorted(file for file in place.glob(pattern) if file.is_file())
        if len(found) > 1:
            names = ", ".join(file.name for file in found)
            raise DataError(f"{place} holds {names}; expected the path of one of them")
        if found:
            return found[0]
    raise DataError(f"{place} is a folder without {name}; expected {expected}")


def read_utf8(path: Path, what: str = "text in UTF-8") -> str:
    """The text of a file, its lines ending in \\n, without a byte order mark.

    Raises DataError where it cannot be read, or naming the first byte that is not UTF-8.
    """
    content = read_bytes(path, what)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} has the byte 0x{content[error.start]:02x} at position {error.start:,} "
            f"(line {line:,}), which is not UTF-8; expected {what}"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} is missing; expected {what}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; expected {what}") from None
