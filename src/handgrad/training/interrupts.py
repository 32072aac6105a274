"""Ctrl-C and other signals that end a program: during a run they make the loop save and leave."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Final

#: Ctrl-C; the end of a service, a batch job or a container; the end of the terminal.
SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupt:
    """Within `with interrupt:`, the first of `SIGNALS` is `asked`, and a second one ends at once.

    Only in the main thread, which alone receives signals; elsewhere nothing changes. A signal that
    is ignored, as SIGHUP under nohup, stays ignored, except Ctrl-C: shells start what runs in their
    background without it, and who sends it nevertheless means it.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> None:
        self.asked = 0
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            previous = signal.getsignal(number)
            # None belongs to a handler in C, which could not be put back.
            ignored = previous == signal.SIG_IGN and number != signal.SIGINT
            if previous is not None and not ignored:
                self._previous[number] = previous
                signal.signal(number, self._ask)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while self._previous:
            signal.signal(*self._previous.popitem())

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        for each in self._previous:
            usual = signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL
            signal.signal(each, usual)
