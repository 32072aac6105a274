"""Notes as a LaTeX article that pdflatex and lualatex compile as it is.

Equations and drawings use no command of ours, so that they stand on a slide as they stand here:
amsmath, graphicx and tikz are all they need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.tex_text import escape

_PREAMBLE = r"""\documentclass[11pt,fleqn]{article}
\ifdefined\Umathchar % LuaTeX and XeTeX read Unicode by themselves.
\else
  \usepackage[utf8]{inputenc}
  \usepackage[T1]{fontenc}
\fi
\usepackage{amsmath}
\usepackage{graphicx}
\usepackage{tikz}
\usepackage{longtable}
\usepackage[a4paper,margin=25mm]{geometry}
\setlength{\parindent}{0pt}
\setlength{\LTleft}{0pt}
\setlength{\tabcolsep}{4pt}
\setlength{\parskip}{6pt plus 2pt minus 1pt}
\setlength{\emergencystretch}{3em}
\setlength{\mathindent}{1.5em}
\AtBeginDocument{%
  \setlength{\abovedisplayskip}{5pt plus 2pt}\setlength{\belowdisplayskip}{5pt plus 2pt}%
  \setlength{\abovedisplayshortskip}{0pt}\setlength{\belowdisplayshortskip}{3pt plus 1pt}}
"""

#: A formula or drawing that is wider than its room is shrunk to it.
_SHRUNK = r"\resizebox{{\ifdim\width>{0}\linewidth {0}\linewidth\else\width\fi}}{{!}}{{{1}}}"
#: The share of the line that an equation has beside its shape and number.
_ROOM = "0.75"
#: A formula of more LaTeX than this, or with a matrix, may be wider.
_WIDE = 160

#: How many letters a line of a table has room for, by size.
_SIZES = {"normalsize": 84, "small": 92, "footnotesize": 104, "scriptsize": 118}
_LONGEST_WORDS = 32
_FORMULA_LENGTH = 6
#: So many rows fit on a page.
_LONG = 25

_SECTIONS = ("section*", "subsection*", "subsubsection*", "paragraph*")


def render(document: Document) -> str:
    """The whole file. Its labels begin with the title, so that notes can share a document."""
    name = re.sub(r"[^a-z0-9]+", "-", document.title.lower()).strip("-")
    body = _body(opened(document.blocks), name)
    return (
        f"{_PREAMBLE}\\begin{{document}}\n\n{{\\LARGE\\bfseries {escape(document.title)}\\par}}\n\n"
        f"{body}\n\n\\end{{document}}\n"
    )


def _body(blocks: Iterable[Written], name: str) -> str:
    """The blocks; no empty line stands before an equation, where LaTeX would leave one too."""
    body = ""
    for block in blocks:
        joins = isinstance(block, Equation) and not block.name
        body += ("\n" if joins else "\n\n") + _block(block, name)
    return body.lstrip("\n")


def _block(block: Written, name: str) -> str:
    match block:
        case Heading(content, level, _):
            return rf"\{_SECTIONS[min(level, 4) - 1]}{{\raggedright {_inline(content, name)}}}"
        case Paragraph(content):
            return _inline(content, name)
        case Equation():
            return _equation(block, name)
        case Table():
            return _table(block, name)
        case Figure():
            return _figure(block, name)
        case Alert(content):
            return rf"{{\color[HTML]{{A3301C}}{_inline(content, name)}\par}}"
        case List(items):
            lines = "\n".join(rf"\item {_inline(item, name)}" for item in items)
            return f"\\begin{{itemize}}\n{lines}\n\\end{{itemize}}"
        case Code(text):
            return f"\\begin{{verbatim}}\n{text.rstrip()}\n\\end{{verbatim}}"
        case _:
            assert_never(block)


def _inline(content: Content, name: str) -> str:
    return "".join(_span(span, name) for span in spans(content))


def _span(span: Span, name: str) -> str:
    match span:
        case str():
            return escape(span)
        case Mono(text):
            return rf"\texttt{{{escape(text)}}}"
        case Emphasis(text):
            return rf"\emph{{{escape(text)}}}"
        case Strong(text):
            return rf"\textbf{{{escape(text)}}}"
        case Link(_, target) if target.startswith("#eq-"):
            return rf"\eqref{{{_label(target[1:], name)}}}"
        case Link(text, target):
            address = "" if target.startswith("#") else rf" (\texttt{{{escape(target)}}})"
            return escape(text) + address
        case _:
            return rf"\({_math(span)}\)"


def _math(formula: Formula) -> str:
    """No room between a matrix and its fences."""
    return re.sub(r"\\begin{array}{(\w+)}", r"\\begin{array}{@{}\1@{}}", to_latex(formula))


def _equation(equation: Equation, name: str) -> str:
    """An equation that LaTeX numbers, or one without a number."""
    above = ""
    if equation.name:
        above = f"\\hspace*{{1.5em}}{_inline(equation.name, name)}\\nopagebreak\n\n"
    formula = _math(equation.formula)
    if len(formula) > _WIDE or r"\begin{a" in formula:
        formula = _SHRUNK.format(_ROOM, rf"$\displaystyle {formula}$")
    if equation.boxed:
        formula = rf"\boxed{{{formula}}}"
    if equation.shape is not None:
        formula += rf" \qquad {_math(equation.shape)}"
    kind, label = "equation*", ""
    if equation.number:
        kind, label = "equation", rf" \label{{{_label(equation.target, name)}}}"
    return f"{above}\\begin{{{kind}}}{label}\n{formula}\n\\end{{{kind}}}"


def _label(anchor: str, name: str) -> str:
    """eq:layer-norm-3 for the anchor eq-3."""
    return f"eq:{name}-{anchor.removeprefix('eq-')}"


def _figure(figure: Figure, name: str) -> str:
    """The drawing and its caption on one page; what it shows in words is a comment."""
    described = "".join(f"% {escape(line)}\n" for line in figure.description.splitlines())
    drawing = _SHRUNK.format("", f"%\n{figure.tikz}")
    return (
        f"{described}\\begin{{center}}\n\\begin{{minipage}}{{\\linewidth}}\\centering\n{drawing}\n\n"
        f"{{\\small {_inline(figure.caption, name)}\\par}}\n\\end{{minipage}}\n\\end{{center}}"
    )


def _table(table: Table, name: str) -> str:
    """Over as many pages as it needs, in a size that fits the page, long texts in paragraphs."""
    lines = (table.header, *table.rows)
    lengths = [max(map(_length, column)) for column in zip(*lines, strict=True)]
    prose = [
        align == "l" and n > _LONGEST_WORDS for align, n in zip(table.columns, lengths, strict=True)
    ]
    words = sum(n + 3 for n, is_prose in zip(lengths, prose, strict=True) if not is_prose)
    size = next((size for size, room in _SIZES.items() if words <= room), "scriptsize")
    share = max(0.25, (1 - words / _SIZES["normalsize"]) / max(1, sum(prose)) - 0.05)
    columns = "".join(
        rf"p{{{share:.2f}\linewidth}}" if is_prose else align
        for align, is_prose in zip(table.columns, prose, strict=True)
    )
    head = " & ".join(rf"\textbf{{{_inline(content, name)}}}" for content in table.header)
    rows = "\n".join(
        rf"{' & '.join(_inline(content, name) for content in line)} \\" for line in table.rows
    )
    # A long table takes LaTeX two runs to line up.
    kind, repeat = ("longtable", "\\endhead\n") if len(table.rows) > _LONG else ("tabular", "")
    return (
        f"{{\\{size}\\renewcommand{{\\arraystretch}}{{1.2}}%\n"
        f"\\begin{{{kind}}}{{{columns}}}\n\\hline\n{head} \\\\\n\\hline\n{repeat}"
        f"{rows}\n\\hline\n\\end{{{kind}}}}}"
    )


def _length(content: Content) -> int:
    """About how many letters wide it is."""
    return sum(_span_length(span) for span in spans(content))


def _span_length(span: Span) -> int:
    match span:
        case str():
            return len(span)
        case Mono(text) | Strong(text) | Emphasis(text) | Link(text, _):
            return len(text)
        case _:
            return _FORMULA_LENGTH
