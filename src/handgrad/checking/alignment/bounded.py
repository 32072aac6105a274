"""Runs of changed functions end: a change may make a loop that goes on for ever."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final

from handgrad.checking.alignment.memory import check_variables
from handgrad.checking.alignment.pieces import is_users

#: Instructions that go back, which every loop has.
_BACK: Final = frozenset(code for name, code in dis.opmap.items() if "JUMP_BACKWARD" in name)
#: Times the lines of the unchanged loops, and lines besides, that changed ones may take.
_TIMES: Final = 20
_BESIDES: Final = 1000
#: The memory that variables take is watched where the system keeps no limit of it.
_WATCHES_MEMORY: Final = sys.platform != "linux"


class EndlessError(Exception):
    """A changed function goes on far beyond the unchanged one."""


class LoopLines:
    """The lines of loops in the user's functions: counted once, and bounded from then on."""

    def __init__(self) -> None:
        self._allowed = sys.maxsize
        #: By the place in the source: no change makes a loop, or takes one away.
        self._known: dict[tuple[str, int, str], bool] = {}
        self._taken = 0
        #: The lines of Python of the unchanged run, in loops or not, of users or not.
        self.in_all = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """The run of the unchanged functions."""
        self._taken = self.in_all = 0
        with _traced(self._seen):
            yield
        self._allowed = _TIMES * self._taken + _BESIDES

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """A run that raises EndlessError where it takes more lines than are allowed."""
        if self._allowed == _BESIDES:  # no loop took a line, and no change makes one
            yield
            return
        self._taken = 0
        with _traced(self._entered):
            yield

    def _seen(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.in_all += 1
            self._taken += self._loops(frame.f_code)
        return self._seen

    def _entered(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        return self._line if self._loops(code) else None

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._taken += 1
            if self._taken > self._allowed:
                raise EndlessError
            if _WATCHES_MEMORY:
                check_variables(frame)
        return self._line

    def _loops(self, code: CodeType) -> bool:
        place = code.co_filename, code.co_firstlineno, code.co_name
        known = self._known.get(place)
        if known is None:
            known = not _BACK.isdisjoint(code.co_code[::2]) and is_users(code)
            self._known[place] = known
        return known


@contextmanager
def _traced(trace: Callable[[FrameType, str, Any], Any]) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
