"""Standard output and standard error: terminals without Unicode, closed pipes and full disks."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Final, TextIO

#: The exit code where the reader of the output, such as `head`, has gone: 128 and SIGPIPE.
CLOSED_PIPE: Final = 141


def accept_any_text() -> None:
    """Let both write what their encoding lacks, as \\u2717, and names that are not UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            code = code or CLOSED_PIPE
            _drop(stream)
        except (OSError, ValueError) as error:
            if code == 0:
                code = 2
                reason = getattr(error, "strerror", None) or error
                with suppress(OSError, ValueError):
                    print(f"handgrad: output cannot be written: {reason}", file=sys.stderr)
            _drop(stream)
    return code


def _drop(stream: TextIO) -> None:
    """Send to nowhere what is left in a stream, which Python would try to write at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
