"""Memory that changed functions may take: a change may make a list or an array grow without end."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np

#: Bytes beside what is taken already, for each core in whose thread a library may work, and times
#: those of the inputs.
_BESIDES: Final = 2**30
_OF_CORE: Final = 2**24
_TIMES: Final = 100
#: Elements of a variable, and lists within lists, where the system keeps no such limit.
_ELEMENTS: Final = 2**24
_DEEP: Final = 16


class MemoryLimit:
    """The limit of the whole process, which the first search sets and the last one takes back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._searches = 0
        self._before: tuple[int, int] | None = None

    def enter(self, inputs: int) -> None:
        with self._lock:
            self._searches += 1
            # There is none where the system does not say what is taken, as in some sandboxes.
            if self._searches > 1 or sys.platform != "linux" or not (pages := _pages()):
                return
            import resource

            taken = pages * resource.getpagesize()
            self._before = before = resource.getrlimit(resource.RLIMIT_DATA)
            cores = os.cpu_count() or 1
            most = taken + _BESIDES + _OF_CORE * cores + _TIMES * inputs
            known = [each for each in (most, *before) if each != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_DATA, (min(known), before[1]))

    def leave(self) -> None:
        with self._lock:
            self._searches -= 1
            if self._searches == 0 and sys.platform == "linux" and self._before is not None:
                import resource

                resource.setrlimit(resource.RLIMIT_DATA, self._before)
                self._before = None


_LIMIT: Final = MemoryLimit()


@contextmanager
def bounded_memory(inputs: int) -> Iterator[None]:
    """A block that raises MemoryError where it takes far more than inputs of so many bytes do.

    Where the system keeps such a limit, as Linux does; elsewhere loops are watched line by line.
    """
    _LIMIT.enter(inputs)
    try:
        yield
    finally:
        _LIMIT.leave()


def _pages() -> int:
    """The pages of data that this process has; 0 where that is not known."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    except (OSError, IndexError, ValueError):
        return 0


def check_variables(frame: FrameType) -> None:
    """Raise MemoryError where a variable holds too much, as a list in itself does."""
    if any(_elements(each) > _ELEMENTS for each in frame.f_locals.values()):
        raise MemoryError


def _elements(value: Any, depth: int = 0) -> int:
    """The number of elements of an array, or of a list and the last of those in it."""
    if isinstance(value, np.ndarray):
        return value.size
    if not isinstance(value, list) or not value:
        return 1
    return _ELEMENTS + 1 if depth > _DEEP else len(value) * _elements(value[-1], depth + 1)
