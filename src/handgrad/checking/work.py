"""The work of a search for causes, counted so that it ends at the same place on every machine.

Seconds by a clock would let a fast machine find causes that a slow or busy one does not, so that
the same backward had two reports.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Microseconds on a core of today: to make a change of a source, to compile one, to compute an
#: expression of it, to begin a pass and put back what it changed, to try a hypothesis about values,
#: to sweep back through one node of a forward.
CHANGE: Final = 60.0
COMPILED: Final = 60.0
EXPRESSION: Final = 60.0
PASS: Final = 60.0
HYPOTHESIS: Final = 100.0
SWEPT: Final = 10.0
#: Lines of Python, and elements of arrays in all the operations of a pass, in a microsecond.
_LINES: Final = 5.0
_ELEMENTS: Final = 20.0
#: Times the counted seconds that work may take; what is not counted, as in a library, ends it so.
_SLOW: Final = 10
#: Seconds between two looks at the clock of the process, each of which is a call of the system.
_LOOK: Final = 0.01


class Work:
    """Work that has been done, of so many seconds by the count and not by the clock."""

    def __init__(self, seconds: float) -> None:
        self.done, self._most = 0.0, 1e6 * seconds
        self._limit = self._most
        self._end = time.process_time() + _SLOW * seconds
        self._is_late, self._next_look = False, 0.0

    def take(self, microseconds: float, lines: int = 0, elements: int = 0) -> None:
        """Count what was done, with the lines that were run and the elements they went through."""
        self.done += microseconds + lines / _LINES + elements / _ELEMENTS

    def over(self) -> bool:
        """Return whether what a block has is done by the count, or all by the clock."""
        if self.done >= self._limit:
            return True
        if (now := time.monotonic()) >= self._next_look:
            self._is_late, self._next_look = time.process_time() > self._end, now + _LOOK
        return self._is_late

    def part(self, share: int) -> float:
        """What is done by the count when one of so many shares of the work that is left is."""
        return self.done + (self._most - self.done) / share

    @contextmanager
    def hurried(self, share: int) -> Iterator[None]:
        """A block that has one of so many shares of the work that is left.

        No more than a block around it, but for one that has all of it.
        """
        before, own = self._limit, self.part(share)
        self._limit = own if share == 1 else min(own, before)
        try:
            yield
        finally:
            self._limit = before
