"""Ctrl-C on the command line: the first ends the command, and no other interrupts its ending."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, Final

INTERRUPTED: Final = 130
#: Seconds for which a command that ends is left to do so; a Ctrl-C after them ends it at once.
_PATIENCE: Final = 1.0


class Interrupts:
    """Raises KeyboardInterrupt for a SIGINT, unless one is on its way out already: who holds the
    keys sends several, and the others would end what says the one sentence, in a traceback.

    What was raised and went no further, as in an import that takes every exception for an absent
    module, is not on its way: the next SIGINT raises again. Where SIGINT is handled or ignored
    already, and outside of the main thread, nothing changes.
    """

    def __init__(self) -> None:
        self._began: float | None = None

    @property
    def heard(self) -> bool:
        """Return whether a SIGINT has come."""
        return self._began is not None

    def heed(self) -> None:
        """Begin to listen."""
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._hear)
            sys.unraisablehook = self._lose

    def end(self, code: int) -> None:
        """Let no SIGINT raise anything from here on, and change no exit code of one before.

        Python ends with the system's own handlers in the place of its functions.
        """
        # A training hears of SIGINT itself, and only its exit code says so.
        interrupted = self.heard or code == INTERRUPTED
        ended = signal.SIG_IGN if interrupted else signal.SIG_DFL
        if signal.getsignal(signal.SIGINT) == self._hear:
            signal.signal(signal.SIGINT, ended)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if _is_leaving(sys.exception()):
            if self._began is not None and now - self._began > _PATIENCE:
                os._exit(INTERRUPTED)
        else:
            self._began = now
            raise KeyboardInterrupt

    def _lose(self, lost: Any) -> None:
        """An exception in a finalizer goes no further; of a Ctrl-C the next one takes its place."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(lost)


def _is_leaving(error: BaseException | None) -> bool:
    """Return whether this exception, which is being handled, is or came of a KeyboardInterrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
