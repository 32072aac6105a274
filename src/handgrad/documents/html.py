"""Notes as one HTML file: MathML, a stylesheet, nothing to fetch, and a script only for a story."""

from __future__ import annotations

import re
from html import escape
from typing import assert_never

from handgrad.documents import alive, skeleton
from handgrad.documents.document import (
    Alert,
    Block,
    Code,
    Content,
    Details,
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
    spans,
)
from handgrad.documents.formulas.mathml import to_mathml
from handgrad.documents.labels import label

_ALIGNMENTS = {"l": "left", "c": "center", "r": "right"}


def page(document: Document) -> str:
    """A whole file, readable on a phone, in the dark and on paper."""
    style, scripts = "", ""
    if document.story is not None:
        style, scripts = alive.style(), alive.scripts(document.story, document.lang)
    body = _body(document)
    return skeleton.page(document.title, body, lang=document.lang, style=style, scripts=scripts)


def fragment(document: Document) -> str:
    """The same for a notebook's cell: an element with its stylesheet, in the cell's colours."""
    return skeleton.fragment(_body(document), document.lang)


def _body(document: Document) -> str:
    blocks = "".join(block_of(block, document.lang) for block in document.blocks)
    return f"<h1>{escape(document.title)}</h1>\n{blocks}"


def block_of(block: Block, lang: str) -> str:
    match block:
        case Heading(content, level, anchor):
            tag = f"h{min(level + 1, 6)}"
            return f"<{tag}{_id(anchor)}>{inline(content)}</{tag}>\n"
        case Paragraph(content):
            return f"<p>{inline(content)}</p>\n"
        case Equation():
            return _equation(block, lang)
        case Table():
            return _table(block, lang)
        case Figure():
            return _figure(block)
        case Alert(content):
            return f'<p class="alert" role="alert">{inline(content)}</p>\n'
        case List(items):
            entries = "".join(f"<li>{inline(item)}</li>\n" for item in items)
            return f"<ul>\n{entries}</ul>\n"
        case Details():
            return _details(block, lang)
        case Code(text):
            return f"<pre><code>{escape(text)}</code></pre>\n"
        case _:
            assert_never(block)


def inline(content: Content) -> str:
    return "".join(_span(span) for span in spans(content))


def _span(span: Span) -> str:
    match span:
        case str():
            return escape(span, quote=False)
        case Mono(text):
            return f"<code>{escape(text, quote=False)}</code>"
        case Emphasis(text):
            return f"<cite>{escape(text, quote=False)}</cite>"
        case Strong(text):
            return f"<strong>{escape(text, quote=False)}</strong>"
        case Link(text, target):
            return f'<a href="{escape(target)}">{escape(text, quote=False)}</a>'
        case _:
            return to_mathml(span)


def _id(anchor: str) -> str:
    return f' id="{escape(anchor)}"' if anchor else ""


def _equation(equation: Equation, lang: str) -> str:
    formula = to_mathml(equation.formula, display=True)
    name = f'<div class="name">{inline(equation.name)}</div>' if equation.name else ""
    shape = ""
    if equation.shape is not None:
        shape = f'<div class="shape">{to_mathml(equation.shape)}</div>'
    number = ""
    if equation.number:
        spoken = escape(f"{label(lang, 'equation')} {equation.number}")
        number = (
            f'<a class="number" href="#{escape(equation.target)}" aria-label="{spoken}">'
            f"({escape(equation.number)})</a>"
        )
    kind = "equation boxed" if equation.boxed else "equation"
    return (
        f'<div class="{kind}"{_id(equation.target)}>{name}'
        f'<div class="formula scroll">{formula}</div>{shape}{number}</div>\n'
    )


def _details(details: Details, lang: str) -> str:
    summary = inline(details.summary)
    if details.level:
        tag = f"h{min(details.level + 1, 6)}"
        summary = f"<{tag}>{summary}</{tag}>"
    body = "".join(block_of(block, lang) for block in details.blocks)
    return f"<details{_id(details.anchor)}>\n<summary>{summary}</summary>\n{body}</details>\n"


def _table(table: Table, lang: str) -> str:
    def cells(tag: str, contents: tuple[Content, ...]) -> str:
        return "".join(
            f'<{tag} class="{_ALIGNMENTS[align]}">{inline(content)}</{tag.split()[0]}>'
            for align, content in zip(table.columns, contents, strict=True)
        )

    head = cells('th scope="col"', table.header)
    body = "".join(f"<tr>{cells('td', row)}</tr>\n" for row in table.rows)
    spoken = escape(label(lang, "table"))
    return (
        f'<div class="scroll" role="group" aria-label="{spoken}" tabindex="0">\n<table>\n'
        f"<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def _figure(figure: Figure) -> str:
    drawing = re.sub(r"^\s*<\?xml.*?\?>\s*", "", figure.svg, flags=re.DOTALL)
    spoken = f' role="img" aria-label="{escape(figure.description)}"' if figure.description else ""
    return (
        f'<figure>\n<div class="drawing scroll"{spoken}>{drawing}</div>\n'
        f"<figcaption>{inline(figure.caption)}</figcaption>\n</figure>\n"
    )
