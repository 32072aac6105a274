"""The parts of an op's docstring, so that notes repeat none of its words."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from typing import Final

from handgrad.documents.document import Content, Mono

_EQUATIONS: Final = re.compile(r"(Forward|Backward):\s")
_FIELD: Final = re.compile(r"^(Shapes:|Raises|Source:)", re.MULTILINE)


@dataclass(frozen=True)
class DocString:
    """The first sentence, the paragraphs on conventions and edges, the shapes and the source."""

    summary: str = ""
    conventions: tuple[str, ...] = ()
    shapes: str = ""
    source: str = ""


def parse(text: str) -> DocString:
    """The parts of a docstring. The equations in it are left out: the tree has them."""
    fields = {"Shapes:": "", "Raises": "", "Source:": ""}
    found = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        first, *rest = _FIELD.split(paragraph)
        for name, words in zip(rest[::2], rest[1::2], strict=True):
            fields[name] = _joined(words)
        if first.strip() and not _EQUATIONS.match(first):
            found.append(_joined(first))
    summary, *conventions = found or [""]
    return DocString(summary, tuple(conventions), fields["Shapes:"], fields["Source:"])


def introduction(model: type) -> str:
    """A sentence on a class: that of its file where it begins with the name of the class, else the
    first of its own docstring; none where that is a formula."""
    words = (sys.modules[model.__module__].__doc__ or "").partition("\n\n")[0]
    name, colon, rest = _joined(words).partition(": ")
    if colon and name.casefold() == model.__name__.casefold():
        return rest[:1].upper() + rest[1:]
    own = parse(vars(model).get("__doc__") or "").summary
    first = re.split(r"(?<=[.;:])\s", own)[0].rstrip(";:")
    return "" if "=" in first else first


def purposes(kind: type) -> list[str]:
    """The paragraphs on why a class is there: those of its file behind the first, where that begins
    with the name of the class."""
    first, *others = paragraphs(sys.modules[kind.__module__].__doc__ or "")
    name = first.partition(": ")[0].replace("&", "").replace(" ", "")
    return others if name.casefold() == kind.__name__.casefold() else []


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a docstring, each in one line."""
    return [_joined(each) for each in re.split(r"\n\s*\n", text) if each.strip()]


def prose(text: str) -> Content:
    """Words with `code` in them."""
    pieces = text.split("`")
    spans = [Mono(piece) if i % 2 else piece for i, piece in enumerate(pieces) if piece]
    return tuple(spans)


def _joined(words: str) -> str:
    return " ".join(words.split())
