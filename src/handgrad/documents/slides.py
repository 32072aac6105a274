"""A document as slides: one equation or one step each, under the heading that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from handgrad.documents import html, pdf, skeleton
from handgrad.documents.document import (
    Block,
    Content,
    Details,
    Document,
    Heading,
    Paragraph,
    spans,
)

#: A page of the width and height of a screen, in Typst.
_PAGE: Final = """
#set page(paper: "presentation-16-9", margin: (x: 24mm, y: 16mm), numbering: "1")
#set text(size: 22pt)
"""


@dataclass(frozen=True)
class Slide:
    """Blocks that are shown at once, and the part of the document that they stand in."""

    heading: Content
    blocks: tuple[Block, ...]


def slides(document: Document) -> list[Slide]:
    """The title with the first words; then every equation, drawing and table on its own.

    Paragraphs go with what follows them, and one that explains symbols with its equation. What is
    folded is left out.
    """
    return [each for each in _slides(document) if each.blocks]


def _slides(document: Document) -> Iterator[Slide]:
    heading: Content = document.title
    waiting: list[Block] = []
    last: Slide | None = None
    for block in document.blocks:
        match block:
            case Heading(content):
                if last is not None:
                    yield last
                yield Slide(heading, tuple(waiting))
                heading, waiting, last = content, [], None
            case Details():
                continue
            case Paragraph(content) if last is not None and not _leads(content):
                last = Slide(heading, (*last.blocks, block))
            case Paragraph():
                waiting.append(block)
            case _:
                if last is not None:
                    yield last
                last, waiting = Slide(heading, (*waiting, block)), []
    if last is not None:
        yield last
    yield Slide(heading, tuple(waiting))


def _leads(content: Content) -> bool:
    """True for words that go with what comes after them: For t = 1, …, T:"""
    *_, last = ("", *spans(content))
    return isinstance(last, str) and last.endswith(":")


def page(document: Document) -> str:
    """One HTML file that needs nothing else: a screen for each slide, a page each in print."""
    body = ""
    for slide in slides(document):
        tag = "h2" if body else "h1"
        heading = f"<{tag}>{html.inline(slide.heading)}</{tag}>\n"
        blocks = "".join(html.block_of(each, document.lang) for each in slide.blocks)
        body += f"<section>\n{heading}{blocks}</section>\n"
    style = skeleton.styles("slides")
    return skeleton.page(document.title, body, lang=document.lang, name="slides", style=style)


def render(document: Document) -> bytes:
    """The PDF. Raises HandgradError where the package typst is missing or cannot set the slides."""
    return pdf.compiled(source(document))


def source(document: Document) -> str:
    """The slides in Typst, a page each."""
    pages = [
        "\n".join(pdf.written((Heading(each.heading), *each.blocks), document.lang))
        for each in slides(document)
    ]
    return pdf.source(document, _PAGE, "\n#pagebreak()\n".join(["", *pages]))
