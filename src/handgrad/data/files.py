"""Find and open the user's files, within bounds of memory and time.

Only regular files are read: a pipe or a device would block or never end. Reading takes at most
4 × the bytes of the file and `SPARE`, or HANDGRAD_DATA_MB in its place, so that a small file which
says that it is large, or unpacks to a large one, ends in a sentence before memory is asked for.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

import numpy as np

from handgrad.arrays import Array
from handgrad.data.published import how_to_get
from handgrad.errors import DataError
from handgrad.escaping import cut, listed, quoted
from handgrad.paths import StrPath, as_path

#: Bytes that reading may take beyond 4 × the file: the smallest sets need room for their arrays.
SPARE: Final = 150_000_000
#: Characters in one line of a table or of pairs; Python's objects for its cells take 30 × as much.
LONGEST_LINE: Final = 2**22
#: Bytes that are read at a time.
CHUNK: Final = 2**20

_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


# -- where files are -------------------------------------------------------------------------------


def find(name: str, path: StrPath | None, expected: str, folders: Iterable[str] = ()) -> Path:
    """The file or folder of the set `name`: `path`, or else where HANDGRAD_DATA points.

    Either may also be the folder above, with one folder for each set, named as the set or as one
    of `folders`. Raises DataError, with what is `expected`, where there is nothing.
    """
    given = path if path is not None else os.environ.get("HANDGRAD_DATA")
    if not given:
        raise DataError(
            f"{name}: no data given; expected --data PATH or HANDGRAD_DATA=PATH, in Python "
            f"hg.data.load({name!r}, PATH), where PATH is {expected}{how_to_get(name)}"
        )
    location = as_path(name, given)
    try:
        os.stat(location)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{location} {_reason(error)}; expected {expected}{how_to_get(name)}"
        ) from None
    inside = (location / folder for folder in (name, *folders))
    return next((folder for folder in inside if os.path.isdir(folder)), location)


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
    location = find(name, path, expected, folders)
    if not os.path.isdir(location):
        return location
    entries(location)
    for pattern in patterns:
        found = sorted(file for file in location.glob(pattern) if os.path.isfile(file))
        if len(found) > 1:
            names = listed(file.name for file in found)
            raise DataError(f"{location} holds {names}; expected the path of one of them")
        if found:
            return found[0]
    raise DataError(f"{location} is a folder without {name}; expected {expected}")


def entries(folder: Path) -> list[Path]:
    """Everything in a folder, by name. Raises DataError where it cannot be listed."""
    try:
        return sorted(folder / name for name in os.listdir(folder))
    except OSError as error:
        raise DataError(f"{folder} {_reason(error)}; expected a folder to read from") from None


def shortened(error: BaseException) -> str:
    """The message of another library's error, cut to a readable length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return cut(text, 120)


def _reason(error: OSError | ValueError) -> str:
    """The end of a sentence that begins with the path."""
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {shortened(error)}"


# -- how much may be read --------------------------------------------------------------------------


class Bound:
    """The memory that reading `path` may take: 4 × its `size` in bytes, and `SPARE`."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self._allowed = 4 * size + _spare()

    def check(self, needed: float, remedy: str = "") -> None:
        """Raise DataError where so many bytes are too many; remedy: what else to do."""
        if needed > self._allowed:
            spare = f"{_spare() / 1e6:g} MB"
            raise DataError(
                f"{self.path} has {self.size:,} bytes and needs {needed / 1e6:,.0f} MB of memory; "
                f"expected at most {self._allowed / 1e6:,.0f} MB, 4 × the file + {spare}; {remedy}"
                f"set HANDGRAD_DATA_MB to replace the {spare}"
            )


def _spare() -> float:
    given = os.environ.get("HANDGRAD_DATA_MB")
    if not given:
        return SPARE
    try:
        megabytes = float(given)
    except ValueError:
        megabytes = -1.0
    if not 0 <= megabytes < 1e12:
        raise DataError(
            f"HANDGRAD_DATA_MB is {quoted(given)}; expected a number of megabytes from 0"
        )
    return 1e6 * megabytes


# -- opening ---------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path, what: str) -> Iterator[tuple[IO[bytes], Bound]]:
    """The regular file at `path`, unpacked if its name ends in .gz, and the bound of its memory.

    Raises DataError where it is missing, of another kind, or cannot be read to its end.
    """
    try:
        with _regular(path, what) as file:
            bound = Bound(path, os.fstat(file.fileno()).st_size)
            if path.suffix != ".gz":
                yield file, bound
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast(IO[bytes], unpacked), bound
    except FileNotFoundError:
        raise DataError(f"{path} is missing; expected {what}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} is not a whole gzip file ({shortened(error)}); expected {what}"
        ) from None
    except MemoryError:
        raise DataError(f"{path} is larger than the memory left; expected {what}") from None
    except OSError as error:
        raise DataError(f"{path} {_reason(error)}; expected {what}") from None


def _regular(path: Path, what: str) -> IO[bytes]:
    # Asked before opening, because opening a device can have effects, and again after it, because
    # the path may lead elsewhere by then; without O_NONBLOCK a pipe would wait for its writer.
    try:
        _check_kind(path, os.stat(path), what)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags)
    except ValueError as error:  # a name with a zero byte, or that the system cannot spell
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} {_reason(error)}; expected {what}") from None
    file = os.fdopen(descriptor, "rb")
    try:
        _check_kind(path, os.fstat(descriptor), what)
    except DataError:
        file.close()
        raise
    return file


def _check_kind(path: Path, status: os.stat_result, what: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "no file")
    raise DataError(f"{path} cannot be read: Is {kind}; expected {what}, in a regular file")


def read_raw(file: IO[bytes], count: int) -> Array:
    """The next `count` bytes (count,) uint8, fewer where the file ends."""
    values = np.empty(count, np.uint8)
    done = 0
    while done < count:
        piece = file.read(min(CHUNK, count - done))
        if not piece:
            break
        values[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    return values[:done]


def read_bytes(path: Path, what: str) -> bytes:
    """The content of a file that is not packed."""
    with opened(path, what) as (file, bound):
        content = file.read(bound.size + 1)
        if len(content) != bound.size:
            raise DataError(f"{path} was changed while it was read; expected {what}")
        return content


# -- text ------------------------------------------------------------------------------------------


def read_utf8(path: Path, what: str = "text in UTF-8") -> str:
    """The text of a file, its lines ending in \\n, without a byte order mark.

    Raises DataError where it cannot be read, or naming the first byte that is not UTF-8.
    """
    content = read_text(path, what)
    # One character beyond U+FFFF makes Python keep four bytes for each of the text.
    wide = any(mark in content for mark in (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4"))
    Bound(path, len(content)).check(len(content) * (5 if wide else 3))
    return content.decode("utf-8")


def read_text(path: Path, what: str = "text in UTF-8") -> bytes:
    """The same as the bytes of UTF-8, which take less memory than Python's strings."""
    content = read_bytes(path, what)
    try:
        for _ in decoded(content):
            pass
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} has the byte 0x{content[error.start]:02x} at position {error.start:,} "
            f"(line {line:,}), which is not UTF-8; expected {what}"
        ) from None
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return content.removeprefix(b"\xef\xbb\xbf")


def decoded(content: bytes) -> Iterator[str]:
    """UTF-8 as text, a piece at a time. Raises UnicodeDecodeError with the offset in `content`."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), CHUNK):
        piece = content[start : start + CHUNK]
        try:
            yield decoder.decode(piece, final=start + CHUNK >= len(content))
        except UnicodeDecodeError as error:
            # The decoder had kept the first bytes of a character from the piece before.
            first = start + len(piece) - len(error.object)
            raise UnicodeDecodeError(
                "utf-8", content, first + error.start, first + error.end, error.reason
            ) from None


def read_lines(
    path: Path,
    what: str,
    *,
    longest: int = LONGEST_LINE,
    newline: str | None = None,
    errors: str = "strict",
) -> Iterator[tuple[int, str, Bound]]:
    """The number, the text and the bound of each line, read as they are asked for.

    The text is in UTF-8, or in UTF-16 where a byte order mark says so, as spreadsheets write what
    they call Unicode. newline: as that of `open`. Raises DataError for lines beyond `longest`
    characters, for what is neither, and where a packed file unpacks to more than its bound.
    """
    with opened(path, what) as (file, bound):
        wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        file.seek(0)
        encoding = "utf-16" if wide else "utf-8-sig"
        text = io.TextIOWrapper(file, encoding, errors=errors, newline=newline)
        number = total = 0
        try:
            while line := text.readline(longest):
                number += 1
                total += len(line)
                bound.check(total, "unpack it first, or ")
                if len(line) == longest:
                    raise DataError(
                        f"{path}: line {number:,} has {longest:,} characters or more; "
                        f"expected shorter ones, as {what} has"
                    )
                yield number, line, bound
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path} has the byte 0x{error.object[error.start]:02x} in line {number + 1:,} or "
                f"later, which is not {'UTF-16' if wide else 'UTF-8'}; expected {what}, which "
                "spreadsheets and editors write where it is chosen as they save"
            ) from None
        finally:
            text.detach()


# -- JSON ------------------------------------------------------------------------------------------

#: Bytes of memory that each of these characters announces in Python's objects, rounded up.
_OBJECTS: Final = {"{": 240, "[": 88, '"': 40, ",": 48}


def read_json(path: Path, what: str) -> tuple[Any, str]:
    """The value of a JSON file, and its text. Raises DataError where it is not JSON."""
    return parse_json(path, read_utf8(path, what), what)


def parse_json(path: Path, text: str, what: str) -> tuple[Any, str]:
    """The same of a text that was read from `path`."""
    needed = sum(text.count(mark) * size for mark, size in _OBJECTS.items())
    Bound(path, len(text)).check(needed)
    try:
        return json.loads(text), text
    except RecursionError:
        raise DataError(f"{path} is JSON nested too deep; expected {what}") from None
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({shortened(error)}); expected {what}") from None
