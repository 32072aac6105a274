"""Notes as GitHub-flavoured Markdown, its mathematics between dollar signs.

Markdown takes a backslash before punctuation, and two backslashes, for its own escapes even inside
formulas; what is written here has neither.
"""

from __future__ import annotations

import re
from typing import assert_never

from handgrad.documents.document import (
    Alert,
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
from handgrad.documents.formulas.formula import Formula
from handgrad.documents.formulas.latex import TALL_ROW_END, to_latex
from handgrad.documents.labels import label

_RULES = {"l": ":--", "c": ":-:", "r": "--:"}


def render(document: Document) -> str:
    """The whole document. A figure is left out: its caption says what it shows and where it is."""
    blocks = [f"# {_escape(document.title)}"]
    blocks += [_block(block, document.lang) for block in opened(document.blocks)]
    return "\n\n".join(blocks) + "\n"


def _block(block: Written, lang: str) -> str:
    match block:
        case Heading(content, level, _):
            return f"{'#' * min(level + 1, 6)} {_inline(content)}"
        case Paragraph(content):
            return _inline(content)
        case Equation():
            return _equation(block)
        case Table():
            return _table(block)
        case Figure(_, _, caption, description):
            said = f" — {_escape(description)}" if description else ""
            return f"*{_inline(caption)}*{said}\n\n{label(lang, 'figure_elsewhere')}"
        case Alert(content):
            return f"> [!CAUTION]\n> {_inline(content)}"
        case List(items):
            return "\n".join(f"- {_inline(item)}" for item in items)
        case Code(text):
            return f"```python\n{text.rstrip()}\n```"
        case _:
            assert_never(block)


def _inline(content: Content) -> str:
    return "".join(map(_span, spans(content)))


def _span(span: Span) -> str:
    match span:
        case str():
            return _escape(span)
        case Mono(text):
            return _code(text)
        case Emphasis(text):
            return f"*{_escape(text)}*"
        case Strong(text):
            return f"**{_escape(text)}**"
        case Link(text, target):
            # An equation has no anchor in Markdown.
            return _escape(text) if target.startswith("#") else f"[{_escape(text)}]({target})"
        case _:
            return f"${_math(span)}$"


def _equation(equation: Equation) -> str:
    formula = _math(equation.formula)
    if equation.boxed:
        formula = rf"\boxed{{{formula}}}"
    if equation.shape is not None:
        formula += rf" \qquad {_math(equation.shape)}"
    if equation.number:
        formula += rf" \tag{{{equation.number}}}"
    name = f"{_inline(equation.name)}\n\n" if equation.name else ""
    return f"{name}$$\n{formula}\n$$"


def _table(table: Table) -> str:
    lines = (table.header, *table.rows)
    cells = [[_inline(content).replace("|", r"\|") for content in line] for line in lines]
    cells.insert(1, [_RULES[align] for align in table.columns])
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _math(formula: Formula) -> str:
    """LaTeX without what Markdown would change: rows end with \\cr, an underscore is a space."""
    latex = to_latex(formula).replace(TALL_ROW_END, r"\cr")
    return latex.replace(r"\\", r"\cr").replace(r"\_", " ")


def _code(text: str) -> str:
    """Text between more backticks than stand in it, on one line."""
    line = text.replace("\n", " ")
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    room = " " if "`" in (line[:1], line[-1:]) else ""
    return f"{fence}{room}{line}{room}{fence}"


def _escape(text: str) -> str:
    """Text as itself on one line, also where a list or a heading would begin."""
    escaped = re.sub(r"([\\`*_\[\]<>#$~])", r"\\\1", text.replace("\n", " "))
    return re.sub(r"^(\d+(?=[.)])|(?=[+-]\s))", r"\1\\", escaped)
