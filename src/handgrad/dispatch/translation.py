"""References as another compiler runs them: with loops in the form that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

Reference: TypeAlias = Callable[..., Any]

_translate: Final[ContextVar[Callable[[Reference], Reference] | None]] = ContextVar(
    "handgrad.translate", default=None
)


@contextmanager
def translating(translate: Callable[[Reference], Reference]) -> Iterator[None]:
    """Within the block, `translate(reference)` runs in the place of every reference."""
    token = _translate.set(translate)
    try:
        yield
    finally:
        _translate.reset(token)


def translated(reference: Reference) -> Reference:
    """The reference as it is to run."""
    translate = _translate.get()
    return reference if translate is None else translate(reference)
