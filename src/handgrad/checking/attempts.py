"""Hypotheses that raise: each is left out and noted, and the search for causes goes on.

A gradient that was found wrong stays wrong, whatever happens while its cause is looked for.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")
_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)
_END: Final = object()


class Inapplicable(Exception):  # noqa: N818  (a finding, not an error)
    """The changed program does not run: the hypothesis is no cause of these numbers."""


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect in a list, one sentence each, what hypotheses raise in the block.

    Outside of such a block exceptions pass, so that the parts of a search hide none of theirs.
    """
    found: list[str] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def attempt(hypothesis: Callable[[], T], otherwise: T) -> T:
    """The result of a part of the search; `otherwise` where that raises."""
    try:
        return hypothesis()
    except Exception as error:
        found = _noted.get()
        if found is None:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"line {last.lineno} of {Path(last.filename).name}"
        first = (str(error).splitlines() or [""])[0]
        found.append(f"{type(error).__name__}: {first} ({where})")
        return otherwise


def attempted(source: Iterable[T]) -> Iterator[T]:
    """All that a source of hypotheses gives before it ends or raises."""
    items = iter(source)
    while (each := attempt(partial(next, items, _END), _END)) is not _END:
        yield each  # type: ignore[misc]
