"""Docstrings as reStructuredText.

They are plain text for whoever reads the source: code stands in single backticks, a formula may
hold any sign, and lines that are aligned stay lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_FORMULA: Final = re.compile(r"(Forward|Backward): ")
_ITEM: Final = re.compile(r"(- |\d+\. )")


def escaped(text: str) -> str:
    """Text in which only backticks mean something, also where a line ends between two."""
    parts = re.split(r"`([^`]+)`", text)
    parts[::2] = [re.sub(r"([\\*_|`<>])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"\\ ``{' '.join(part.split())}``\\ " for part in parts[1::2]]
    return "".join(parts)


def converted(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring, paragraph by paragraph."""
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if blank:
            continue
        indented = [line.startswith(" ") for line in paragraph]
        if all(indented):
            yield from ["::", "", *(f"    {line}" for line in paragraph)]
        elif any(_ITEM.match(line) for line in paragraph):
            yield from _items(paragraph)
        elif any(indented) or _FORMULA.match(paragraph[0]):
            yield from (f"| {_wide(escaped(line))}" for line in paragraph)
        else:
            yield from escaped("\n".join(paragraph)).splitlines()
        yield ""


def _items(paragraph: list[str]) -> Iterator[str]:
    """A list, parted from a sentence before it."""
    lines = escaped("\n".join(paragraph)).splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        if _ITEM.match(line) and before and not _ITEM.match(before) and not before.startswith(" "):
            yield ""
        yield line


def _wide(line: str) -> str:
    """A line whose indentation is seen."""
    text = line.lstrip()
    return "\N{NO-BREAK SPACE}" * (len(line) - len(text)) + text


def convert(app: Sphinx, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = converted(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
