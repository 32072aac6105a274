"""Text from data, such as the name of a class, as text that a terminal or a browser only shows.

What a sentence quotes of a file goes through `quoted`, `listed` or `cut`: a file may hold names of
any length, and any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

#: Control characters but for tabs and ends of lines, marks that change the direction of what
#: follows, and ends of lines of Unicode.
_ACTS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
#: Letters of a text that a sentence quotes, and names of a list, at most.
_LETTERS: Final = 60
_NAMES: Final = 8


def printable(text: str) -> str:
    r"""The text with \x1b for ESC, and so on: nothing in it moves, colours, rings or reorders."""
    return _ACTS.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(text: str) -> str:
    r"""The same with \n and \t for what would begin another line or column."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")


def cut(text: str, most: int = _LETTERS) -> str:
    """The text without its middle where it has more letters."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[1 - most // 2 :]}"


def quoted(value: object, most: int = _LETTERS) -> str:
    """A value as text between quotes, without its middle where that has more letters."""
    return cut(repr(cut(str(value), most)), 2 * most)


def listed(names: Iterable[object], most: int = _NAMES) -> str:
    """The first names of several, each without its middle where it is long; "none" for none."""
    several = list(names)
    first = ", ".join(cut(str(name), _LETTERS) for name in islice(several, most)) or "none"
    more = len(several) - most
    return f"{first} and {more:,} more" if more > 0 else first
