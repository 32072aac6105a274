"""Notes as data: a title and blocks in order, which `html`, `markdown`, `tex` and `pdf` write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from handgrad.documents.formulas.formula import Formula
from handgrad.documents.story import Story


@dataclass(frozen=True, slots=True)
class Mono:
    """A word of code within a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    text: str


@dataclass(frozen=True, slots=True)
class Emphasis:
    """The title of a work."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """`target` is an address, or "#" and the anchor of a block of the same document."""

    text: str
    target: str


Span: TypeAlias = str | Formula | Mono | Strong | Emphasis | Link

#: What a text is made of: one span, or several one after the other with nothing put between.
Content: TypeAlias = Span | tuple[Span, ...]


def spans(content: Content) -> tuple[Span, ...]:
    return content if isinstance(content, tuple) else (content,)


@dataclass(frozen=True, slots=True)
class Heading:
    """Level 1 is a part of the document; its title stands above all of them."""

    content: Content
    level: int = 1
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    content: Content


@dataclass(frozen=True, slots=True)
class Equation:
    """A formula on a line of its own; shape and number stand at its right, the name before it.
    A result is boxed.

    An equation with a number and no anchor of its own has the anchor "eq-" and the number.
    """

    formula: Formula
    number: str = ""
    shape: Formula | None = None
    name: Content = ""
    anchor: str = ""
    boxed: bool = False

    @property
    def target(self) -> str:
        return self.anchor or (f"eq-{self.number}" if self.number else "")


@dataclass(frozen=True, slots=True)
class Table:
    """`align` has one letter for each column, l, c or r; all are left-aligned without it."""

    header: tuple[Content, ...]
    rows: tuple[tuple[Content, ...], ...]
    align: str = ""

    @property
    def columns(self) -> str:
        return self.align or "l" * len(self.header)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing as SVG, drawn in `currentColor`, with what it shows in words for who cannot see it.

    `tikz` is the same drawing as a TikZ picture.
    Strokes and texts of class "forward" and "backward" take the document's two colours in HTML; the
    attributes `stroke` and `fill` beside the class are what a PDF shows. Ids in the SVG are unique
    in the document.
    """

    svg: str
    tikz: str
    caption: Content
    description: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A paragraph that nobody may overlook, in red."""

    content: Content


@dataclass(frozen=True, slots=True)
class List:
    items: tuple[Content, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of Python."""

    text: str


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks behind a line that opens them in HTML; elsewhere the line is a heading above them.

    `level` is that of the heading; without it the line is a paragraph.
    """

    summary: Content
    blocks: tuple[Block, ...]
    level: int = 0
    anchor: str = ""

    @property
    def written_out(self) -> tuple[Block, ...]:
        """The same where nothing can be opened."""
        if not self.level:
            return (Paragraph(self.summary), *self.blocks)
        return (Heading(self.summary, self.level, self.anchor), *self.blocks)


#: A block as it is written where nothing can be opened.
Written: TypeAlias = Heading | Paragraph | Equation | Table | Figure | Alert | List | Code
Block: TypeAlias = Written | Details


def opened(blocks: Iterable[Block]) -> Iterator[Written]:
    """The blocks with those behind a line among them, as they are printed."""
    for block in blocks:
        if isinstance(block, Details):
            yield from opened(block.written_out)
        else:
            yield block


@dataclass(frozen=True, slots=True)
class Document:
    """`lang` is a key of `labels.LABELS`; a page with a `story` has the script that shows it."""

    title: str
    lang: str = "en"
    blocks: tuple[Block, ...] = field(default=())
    story: Story | None = None
