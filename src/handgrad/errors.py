"""Every error a user can cause: one sentence that says what, what was found and what is allowed."""

from __future__ import annotations


class HandgradError(Exception):
    """Base of every error raised on purpose; the command line prints it and exits with code 2."""


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
