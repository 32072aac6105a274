"""A document as slides: one equation or one step each, under the heading that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from handgrad.documents import html, pdf, skeleton
from handgrad.documents.document import (
    Block,
    Content,
    Details,
    Document,
    Equation,
    Heading,
    Paragraph,
    Table,
    spans,
)
from handgrad.documents.formulas.formula import Sign, Symbol, Text, parts_in

#: A page of the width and height of a screen, in Typst.
_PAGE: Final = """
#set page(paper: "presentation-16-9", margin: (x: 24mm, y: 16mm), numbering: "1")
#set text(size: 22pt)
// A drawing is shrunk to the page, with its caption below.
#let fit(body) = layout(place => {
  let size = measure(body)
  let factor = calc.min(1, place.width / size.width, 64mm / size.height)
  scale(factor * 100%, origin: center + horizon, reflow: true, body)
})
"""
#: So many rows of a table, and so many words, fill a slide.
_ROWS: Final = 6
_WORDS: Final = 45
#: An equation of more letters and signs than these is written smaller.
_LETTERS: Final = 32


@dataclass(frozen=True)
class Slide:
    """Blocks that are shown at once, and the part of the document that they stand in."""

    heading: Content
    blocks: tuple[Block, ...]


def slides(document: Document) -> list[Slide]:
    """The title with the first words; then every equation, drawing and table on its own.

    Paragraphs go with what follows them, unless they fill a slide, and one that explains symbols
    with its equation. A long table has several slides. What is folded is left out.
    """
    return [each for each in _slides(document) if each.blocks]


def _parts(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, a long table in parts that each have its header."""
    for block in blocks:
        if isinstance(block, Table):
            for begin in range(0, max(len(block.rows), 1), _ROWS):
                yield replace(block, rows=block.rows[begin : begin + _ROWS])
        else:
            yield block


def _length(blocks: Iterable[Block]) -> int:
    """The number of words of paragraphs; a formula between them counts as one."""
    texts = (span for each in blocks if isinstance(each, Paragraph) for span in spans(each.content))
    return sum(len(each.split()) if isinstance(each, str) else 1 for each in texts)


def _slides(document: Document) -> Iterator[Slide]:
    heading: Content = document.title
    waiting: list[Block] = []
    last: Slide | None = None
    for block in _parts(document.blocks):
        if last is None and _length(waiting) > _WORDS:
            yield Slide(heading, tuple(waiting))
            waiting = []
        match block:
            case Heading(content):
                if last is not None:
                    yield last
                yield Slide(heading, tuple(waiting))
                heading, waiting, last = content, [], None
            case Details():
                continue
            case Paragraph(content) if last is not None and not _leads(content):
                if _length((*last.blocks, block)) > _WORDS:
                    yield last
                    last = Slide(heading, ())
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
        kind = ' class="long"' if any(map(_is_long, slide.blocks)) else ""
        body += f"<section{kind}>\n{heading}{blocks}</section>\n"
    style = skeleton.styles("slides")
    return skeleton.page(document.title, body, lang=document.lang, name="slides", style=style)


def _is_long(block: Block) -> bool:
    if not isinstance(block, Equation):
        return False
    letters = (each for each in parts_in(block.formula) if isinstance(each, Symbol | Sign | Text))
    return sum(1 for _ in letters) > _LETTERS


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
