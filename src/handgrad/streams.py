"""Standard output and standard error: what they cannot show or take, closed, full or broken."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, BinaryIO, Final, TextIO

from handgrad.escaping import printable

#: The exit code where the reader of the output, such as `head`, has gone: 128 and SIGPIPE.
CLOSED_PIPE: Final = 141


class Terminal:
    """A stream that takes any text: what its encoding lacks is written as \\u2717, and what would
    act on a terminal as \\x1b.

    What it says of its encoding is therefore true, and keeps click from writing past it where the
    stream's own is ASCII; for the same reason it has no `buffer`. One that is lossy goes on without
    what cannot be written.
    """

    encoding: Final = "utf-8"

    def __init__(self, stream: TextIO, *, is_lossy: bool) -> None:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        self.stream = stream
        self._is_lossy = is_lossy

    def write(self, text: str) -> int:
        with self._losing():
            self.stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        with self._losing():
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.stream, name)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):
            if not self._is_lossy:
                raise
            _drop(self.stream)


def open_streams() -> None:
    """Make both streams a `Terminal`; the errors' is lossy, because nothing could tell of its own.

    A stream that was closed before the start leads to nowhere, and so does its descriptor, which
    the next file to be opened would get otherwise, and with it what other libraries print.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or _nowhere("r")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or _nowhere("w")
        setattr(sys, name, Terminal(stream, is_lossy=name == "stderr"))


def _nowhere(mode: str) -> Any:
    return os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8")


def unescaped_output() -> TextIO:
    """Standard output for text that has been escaped, and is coloured."""
    return sys.stdout.stream if isinstance(sys.stdout, Terminal) else sys.stdout


def standard_output() -> BinaryIO:
    """Standard output for bytes."""
    return unescaped_output().buffer


def print_csv(text: str) -> None:
    """Print a table for programs: a file or a pipe gets it as it is, in UTF-8.

    On a terminal what would act on that is shown.
    """
    if sys.stdout.isatty():
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    standard_output().write(text.encode("utf-8", "surrogateescape"))
    standard_output().flush()


def say(sentence: str) -> None:
    """Print a sentence on standard error."""
    print(f"handgrad: {sentence}", file=sys.stderr, flush=True)


def sentence_of(error: OSError | MemoryError) -> str:
    """An error of the system as a sentence."""
    if isinstance(error, MemoryError):
        return f"memory ran out: {error}; allowed: smaller sizes"
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"input or output failed: {reason}"
    return f"{os.fsdecode(error.filename)}: {reason}"


def finish(code: int) -> int:
    """Write out what the streams still hold; the exit code, 2 where they do not take it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            code = code or CLOSED_PIPE
            _drop(stream)
        except (OSError, ValueError) as error:
            if code == 0:
                code = 2
                say(f"output cannot be written: {getattr(error, 'strerror', None) or error}")
            _drop(stream)
    return code


def _drop(stream: TextIO) -> None:
    """Send to nowhere what a stream still holds, which Python would try to write at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
