"""Text from data, such as the name of a class, as text that a terminal or a browser only shows."""

from __future__ import annotations

import re
from typing import Final

#: Control characters but for tabs and ends of lines, marks that change the direction of what
#: follows, and ends of lines of Unicode.
_ACTS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    r"""The text with \x1b for ESC, and so on: nothing in it moves, colours, rings or reorders."""
    return _ACTS.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(text: str) -> str:
    r"""The same with \n and \t for what would begin another line or column."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")
