"""Every error a user can cause: one sentence that says what, what was found and what is allowed."""

from __future__ import annotations

import signal
from typing import Final

from handgrad.escaping import cut

#: Letters of one word of an error's text, and of all, at most.
_WORD: Final = 400
_TEXT: Final = 2000


class HandgradError(Exception):
    """Base of every error raised on purpose; the command line prints it and exits with code 2.

    Its text is one line of no great length: control characters that it has from a file or from its
    name are escaped, and of names longer than some lines the middle is left out.
    """

    def __str__(self) -> str:
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in super().__str__())
        words = text.split(" ") if len(text) > _WORD else [text]
        return cut(" ".join(cut(word, _WORD) for word in words), _TEXT)


class HandgradWarning(UserWarning):
    """Base of every warning given on purpose: one sentence that says how to do without it."""


class ShapeError(HandgradError, ValueError):
    """An array whose shape does not fit the others."""


class ArgumentError(HandgradError, ValueError):
    """An argument whose value is not allowed."""


class EngineError(HandgradError, RuntimeError):
    """The engine asked for cannot run this call."""


class DataError(HandgradError, ValueError):
    """A data file that is missing, truncated or of another kind."""


class RecipeError(HandgradError, ValueError):
    """A recipe with an unknown key, a wrong type or an impossible value."""


class RunError(HandgradError, RuntimeError):
    """A run folder that is missing, incomplete or in use."""


class Interrupted(KeyboardInterrupt):
    """Training was stopped by a signal after saving a checkpoint; the text says how to resume.

    exit_code: what a program ends with by convention, 128 and the number of the signal: 130 after
    Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
    """

    def __init__(self, text: str = "", number: int = signal.SIGINT) -> None:
        super().__init__(text)
        self.exit_code = 128 + number
