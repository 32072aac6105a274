"""Ctrl-C during a run: it asks the loop to save and leave."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C after saving a checkpoint; the text says how to resume."""

    exit_code = 130


class Interrupt:
    """Within `with interrupt:`, the first Ctrl-C sets `asked`, and a second one stops at once.

    Only in the main thread, which alone receives signals; elsewhere nothing changes.
    """

    def __init__(self) -> None:
        self.asked = False
        self._previous: Any = None

    def __enter__(self) -> None:
        self.asked = False
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._ask)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
