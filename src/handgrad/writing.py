"""Files written whole or not at all.

Content goes into a temporary file beside the one that is meant, which takes its place when all of
it is on the disk: a full disk or a killed process leaves the old file or the new one. A symbolic
link, a device or a pipe in the place of a file stays there, and is written through.

Functions here raise OSError where the system fails, as `open` does.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

Content = bytes | memoryview

#: Neither through a symbolic link that somebody planted, nor handed on to other programs.
OWN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
BINARY: Final = getattr(os, "O_BINARY", 0)
_THROUGH: Final = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0) | BINARY
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN | BINARY
_MOST_LINKS: Final = 40
_PARTIAL: Final = ".partial"


def write_file(path: Path, *content: Content) -> None:
    """Put `content` at `path`; see `writing`."""
    with writing(path) as descriptor:
        for part in content:
            write_all(descriptor, part)


def write_new(path: Path, *content: Content) -> None:
    """Put `content` at `path`. Raises FileExistsError, with nothing changed, if anything is there.

    An empty file takes the name first, so that of two processes only one succeeds.
    """
    os.close(os.open(path, _NEW, 0o666))
    try:
        write_atomically(path, *content)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def write_atomically(path: Path, *content: Content) -> None:
    """Put `content` at `path`. Raises OSError for a link, a device or a folder in its place.

    A program's own files are no links, so that one was planted there.
    """
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise not_regular(path)
    with _replacing(path) as descriptor:
        for part in content:
            write_all(descriptor, part)


@contextmanager
def writing(path: Path) -> Iterator[int]:
    """A descriptor whose content becomes that of `path` when the block ends without an error.

    A link's target is replaced in this way and keeps its permissions. A device, and a pipe that
    somebody reads, are written to directly; everything else that is no file is refused.
    """
    with _naming(path), _opened(path) as descriptor:
        yield descriptor


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Give errors of the system the path: a full disk's have no name, others that of a part."""
    try:
        yield
    except OSError as error:
        if error.filename is None or str(error.filename).endswith(_PARTIAL):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    target = _followed(path)
    if _is_descriptor(target):
        with _closing(os.dup(int(target.name))) as descriptor:
            yield descriptor
        return
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is None or stat.S_ISREG(mode):
        if mode is not None and not os.access(target, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        with _replacing(target, mode) as descriptor:
            yield descriptor
    elif stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        # Without O_NONBLOCK a pipe would wait for its reader for ever.
        with _closing(os.open(target, _THROUGH | getattr(os, "O_NONBLOCK", 0))) as descriptor:
            os.set_blocking(descriptor, True)
            yield descriptor
    else:
        raise not_regular(path)


@contextmanager
def writing_binary(path: Path) -> Iterator[IO[bytes]]:
    """The same as a file of Python's."""
    with writing(path) as descriptor, open(descriptor, "wb", closefd=False) as file:
        yield file


def not_regular(path: Path) -> OSError:
    """The error for a path that is no regular file."""
    return OSError(None, "it is not a regular file", str(path))


def reason(error: OSError) -> str:
    """The system's words for an error, such as "No space left on device"."""
    return error.strerror or str(error)


def write_all(descriptor: int, content: Content) -> None:
    """Write every byte: the system may take a part of them at a time."""
    rest = memoryview(content)
    while len(rest):
        rest = rest[os.write(descriptor, rest) :]


@contextmanager
def _replacing(path: Path, mode: int | None = None) -> Iterator[int]:
    """A descriptor of a new file that takes the place of `path`: sync, rename, sync of the folder.

    It has a name of its own and is removed where any of this fails. mode: the permissions of the
    file that was there.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{_PARTIAL}")
    with _closing(os.open(temporary, _NEW, 0o666)) as descriptor:
        try:
            yield descriptor
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, stat.S_IMODE(mode) & 0o777)
            os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    try:
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(path.parent)


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` durable, where the system lets a folder be opened."""
    if os.name == "posix":
        with _closing(os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))) as descriptor:
            os.fsync(descriptor)


def _followed(path: Path) -> Path:
    """The end of a chain of links; it stops at an open descriptor, such as that of /dev/stdout.

    A descriptor's own link leads to a name that may be another file's by now, or nobody's.
    """
    for _ in range(_MOST_LINKS):
        path = Path(os.path.realpath(path.parent), path.name)
        if _is_descriptor(path) or not path.is_symlink():
            return path
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _is_descriptor(path: Path) -> bool:
    return str(path.parent) in ("/dev/fd", f"/proc/{os.getpid()}/fd") and path.name.isdecimal()
