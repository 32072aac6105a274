"""The processor time that one check may spend on changes of a source."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SECONDS: Final = 5.0
#: Seconds after which the time is asked for again.
_SELDOM: Final = 0.05


class Deadline:
    """A processor time that comes; it is asked for now and then, being slow."""

    def __init__(self, end: float) -> None:
        self.end = end
        self._asked, self._over = 0.0, False

    def over(self) -> bool:
        now = time.perf_counter()
        if now > self._asked + _SELDOM:
            self._asked, self._over = now, time.process_time() > self.end
        return self._over


class Budget:
    """Seconds of processor time, of which searches on several inputs take what is left."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self.left = seconds

    @contextmanager
    def spent(self) -> Iterator[float]:
        """The seconds left; what the block takes is taken from them."""
        begin = time.process_time()
        try:
            yield self.left
        finally:
            self.left = max(0.0, self.left - (time.process_time() - begin))
