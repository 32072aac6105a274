"""The sources that a docstring names, as typeset references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from handgrad.documents.document import Block, Content, Emphasis, Heading, List, spans
from handgrad.documents.labels import label
from handgrad.equations import docstrings

#: A surname, or the first of several authors.
_NAME: Final = re.compile(r"[A-Z][\w’'-]*[a-z](?: et al\.)?|(?:van|de|der|den|Le) [\w ]+")


def sources(words: str, lang: str) -> Iterator[Block]:
    """A heading and a list with author, title and year; nothing where no source is named."""
    if words:
        yield Heading(label(lang, "sources"), anchor="sources")
        yield List(tuple(map(reference, words.removesuffix(".").split("; "))))


def reference(words: str) -> Content:
    """One source, its title emphasised: Kingma, Ba, *Adam* (2015), algorithm 1."""
    work, opening, rest = words.partition(" (")
    authors, title = [], work.split(", ")
    while len(title) > 1 and _NAME.fullmatch(title[0]):
        authors.append(title.pop(0))
    if not authors or not opening:
        return (*spans(docstrings.prose(words)), ".")
    after = spans(docstrings.prose(opening + rest))
    return (f"{', '.join(authors)}, ", Emphasis(", ".join(title)), *after, ".")
