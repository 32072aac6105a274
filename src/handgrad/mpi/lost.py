"""The sentence about a rank that was killed, said by a process that outlives all of them.

A launcher answers the death of one rank by killing the others, which therefore cannot speak. So
rank 0 starts a process in a session of its own, that waits at a pipe for what it is to say and says
it once rank 0 is gone.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Final

from handgrad.escaping import one_line

_PROGRAM: Final = """
import sys
said = ""
for line in sys.stdin:
    said = line
sys.stderr.write(said.lstrip())
"""


class LastWords:
    """Says the last sentence it was given, on stderr, when this process ends without taking it
    back by an empty one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def set(self, sentence: str) -> None:
        """Replace the sentence."""
        if self._process is None and sentence:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it is gone, and the training goes on without it
                self._process.stdin.write(one_line(sentence) + "\n")
                self._process.stdin.flush()

    def close(self) -> None:
        """Take the sentence back and end the process."""
        if self._process is not None:
            self.set("")
            self._process.communicate()
            self._process = None
