"""Notes as PDF by Typst: A4 pages, and the same file for the same notes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import assert_never

from handgrad.documents.document import (
    Alert,
    Block,
    Code,
    Content,
    Document,
    Emphasis,
    Equation,
    Figure,
    Heading,
    Link,
    List,
    Mono,
    Paragraph,
    Span,
    Strong,
    Table,
    Written,
    opened,
    spans,
)
from handgrad.documents.formulas.typst import string, to_typst
from handgrad.documents.labels import label
from handgrad.errors import HandgradError

#: Typst brings these fonts with it, so a PDF looks the same everywhere.
_PREAMBLE = r"""
#set page(paper: "a4", margin: (x: 22mm, y: 24mm), numbering: "1")
#set text(font: "New Computer Modern", size: 10.5pt)
#set par(spacing: 0.9em, leading: 0.62em)
#show math.equation: set text(font: "New Computer Modern Math")
#show math.equation.where(block: true): set align(left)
#show raw: set text(font: "DejaVu Sans Mono", size: 0.85em)
#show heading: set block(above: 1.6em, below: 0.8em)
#show heading.where(level: 1): set text(size: 1.15em)
#show heading: set text(hyphenate: false)
#show link: set text(fill: rgb("#17568f"))
#let quiet = rgb("#5d5a54")
#let line = 0.5pt + rgb("#c9c5bd")
#let heading-line(title) = block(
  below: 1.4em, text(size: 1.7em, weight: 700, hyphenate: false, title))
// What is too wide for its place is shrunk to it.
#let fit(body) = layout(place => {
  let size = measure(body)
  if size.width <= place.width { body } else {
    scale(place.width / size.width * 100%, origin: left + horizon, reflow: true, body)
  }
})
#let equation-line(body, shape, number) = block(
  breakable: false, inset: (left: 1.5em), spacing: 0.75em,
  grid(columns: (1fr, auto, auto), column-gutter: 1.2em, align: (left + horizon, horizon, horizon),
    fit(body), text(fill: quiet, shape), text(fill: quiet, number)))
#let equation-name(name) = block(
  sticky: true, inset: (left: 1.5em), below: 0.5em, text(fill: quiet, name))
#let alert(body) = block(
  width: 100%, inset: 0.8em, stroke: 1pt + rgb("#a3301c"), text(fill: rgb("#a3301c"), body))
"""

_ALIGNMENTS = {"l": "left", "c": "center", "r": "right"}


def render(document: Document) -> bytes:
    """The PDF. Raises HandgradError where the package typst is missing or cannot set the notes."""
    return compiled(source(document))


def compiled(text: str) -> bytes:
    """The PDF of a source in Typst. Raises HandgradError as `render` does."""
    try:
        import typst
    except ImportError as error:
        raise HandgradError(
            "notes: PDF needs the package typst, which is not installed; "
            "install it with: pip install 'handgrad[pdf]'"
        ) from error
    epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
    try:
        pdf: bytes = typst.compile(text.encode(), ignore_system_fonts=True, timestamp=epoch)
    except typst.TypstError as error:
        raise HandgradError(f"notes: Typst could not set the PDF: {error}") from error
    return pdf


def source(document: Document, setting: str = "", body: str | None = None) -> str:
    """The document in Typst, or a `body` of its own below its title, with rules of its own."""
    title = string(document.title)
    if body is None:
        body = "\n".join(written(document.blocks, document.lang))
    return (
        f"#set document(title: {title}, date: none)\n#set text(lang: {string(document.lang)})"
        f"{_PREAMBLE}{setting}\n#heading-line({title})\n{body}\n"
    )


def written(blocks: Iterable[Block], lang: str) -> list[str]:
    """The blocks in Typst."""
    return [_block(block, lang) for block in opened(blocks)]


def _block(block: Written, lang: str) -> str:
    match block:
        case Heading(content, level, _):
            return f"#heading(level: {level}, [{_inline(content)}])\n"
        case Paragraph(content):
            return f"{_inline(content)}\n"
        case Equation():
            return _equation(block)
        case Table():
            return _table(block)
        case Figure():
            return _figure(block, lang)
        case Alert(content):
            return f"#alert([{_inline(content)}])\n"
        case List(items):
            entries = ", ".join(f"[{_inline(item)}]" for item in items)
            return f"#list({entries})\n"
        case Code(text):
            return f"#raw(block: true, {string(text.rstrip())})\n"
        case _:
            assert_never(block)


def _inline(content: Content) -> str:
    return "".join(map(_span, spans(content)))


def _span(span: Span) -> str:
    """Text as a string, in which nothing is markup; the semicolon ends the code."""
    match span:
        case str():
            return f"#{string(span)};"
        case Mono(text):
            return f"#raw({string(text)});"
        case Emphasis(text):
            return f"#emph({string(text)});"
        case Strong(text):
            return f"#strong({string(text)});"
        case Link(text, target) if target.startswith("#"):
            return f"#{string(text)};"
        case Link(text, target):
            return f"#link({string(target)}, {string(text)});"
        case _:
            return f"${to_typst(span)}$"


def _equation(equation: Equation) -> str:
    name = f"#equation-name([{_inline(equation.name)}])\n" if equation.name else ""
    shape = f"${to_typst(equation.shape)}$" if equation.shape is not None else ""
    number = f"#{string(f'({equation.number})')}" if equation.number else ""
    formula = f"$ {to_typst(equation.formula)} $"
    if equation.boxed:
        formula = f"box(stroke: 0.5pt + quiet, inset: 0.5em, radius: 2pt, {formula})"
    return f"{name}#equation-line({formula}, [{shape}], [{number}])\n"


def _table(table: Table) -> str:
    columns = ", ".join(_ALIGNMENTS[align] for align in table.columns)
    head = ", ".join(f"[#strong[{_inline(content)}]]" for content in table.header)
    cells = ", ".join(f"[{_inline(content)}]" for row in table.rows for content in row)
    return (
        f"#table(columns: {len(table.header)}, align: ({columns},), inset: 0.45em, "
        "stroke: (x, y) => (top: if y < 2 { line }, bottom: line), "
        f"table.header({head}), {cells})\n"
    )


def _figure(figure: Figure, lang: str) -> str:
    description = string(figure.description or label(lang, "figure"))
    image = f'image(bytes({string(figure.svg)}), format: "svg", alt: {description})'
    caption = f"[{_inline(figure.caption)}]"
    return f"#figure(fit({image}), caption: {caption}, supplement: none, numbering: none)\n"
