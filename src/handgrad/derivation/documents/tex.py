"""Notes as a LaTeX article that pdflatex and lualatex compile as it is."""

from __future__ import annotations

import re
from typing import assert_never

from handgrad.derivation.documents.document import (
    Aside,
    Block,
    Code,
    Content,
    Document,
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
from handgrad.derivation.documents.labels import label
from handgrad.derivation.documents.tex_text import escape
from handgrad.derivation.formulas.formula import Formula
from handgrad.derivation.formulas.latex import to_latex

_PREAMBLE = r"""\documentclass[11pt]{article}
\ifdefined\Umathchar % LuaTeX and XeTeX read Unicode by themselves.
\else
  \usepackage[utf8]{inputenc}
  \usepackage[T1]{fontenc}
\fi
\usepackage{amsmath}
\usepackage{graphicx}
\usepackage{longtable}
\usepackage[a4paper,margin=25mm]{geometry}
\setlength{\parindent}{0pt}
\setlength{\LTleft}{0pt}
\setlength{\tabcolsep}{4pt}
\setlength{\parskip}{6pt plus 2pt minus 1pt}
\setlength{\emergencystretch}{3em}
\newsavebox{\handgradbox}
\newlength{\handgradroom}
% A formula (#1) with its shape (#2) and number (#3) at the right; shrunk where it is too wide.
\newcommand{\handgradequation}[3]{\par\vspace{3pt}%
  \sbox{\handgradbox}{$\displaystyle #1$}%
  \settowidth{\handgradroom}{$#2$\qquad #3\qquad}%
  \handgradroom=\dimexpr\linewidth-\handgradroom-1.5em\relax
  \noindent\hspace*{1.5em}%
  \ifdim\wd\handgradbox>\handgradroom
    \raisebox{-0.4\height}{\resizebox{\handgradroom}{!}{\raisebox{\depth}{\usebox{\handgradbox}}}}%
  \else\usebox{\handgradbox}\fi
  \hfill\mbox{$#2$\qquad #3}\par\vspace{3pt}}
"""

#: How many letters a line of a table has room for, by size.
_SIZES = {"normalsize": 84, "small": 92, "footnotesize": 104, "scriptsize": 118}
_LONGEST_WORDS = 32
_FORMULA_LENGTH = 6
#: So many rows fit on a page.
_LONG = 25

_SECTIONS = ("section*", "subsection*", "subsubsection*", "paragraph*")


def render(document: Document) -> str:
    """The whole file. A figure is left out: its caption says what it shows and where it is."""
    body = "\n\n".join(_block(block, document.lang) for block in document.blocks)
    return (
        f"{_PREAMBLE}\\begin{{document}}\n\n{{\\LARGE\\bfseries {escape(document.title)}\\par}}\n\n"
        f"{body}\n\n\\end{{document}}\n"
    )


def _block(block: Block, lang: str) -> str:
    match block:
        case Heading(content, level, _):
            return rf"\{_SECTIONS[min(level, 4) - 1]}{{{_inline(content)}}}"
        case Paragraph(content):
            return _inline(content)
        case Equation():
            return _equation(block)
        case Table():
            return _table(block)
        case Code(text):
            return _code(text)
        case Figure(_, caption, description):
            said = rf" \textemdash{{}} {escape(description)}" if description else ""
            elsewhere = escape(label(lang, "figure_elsewhere"))
            return f"\\textit{{{_inline(caption)}}}{said}\n\n{elsewhere}"
        case List(items, ordered):
            kind = "enumerate" if ordered else "itemize"
            lines = "\n".join(rf"\item {_inline(item)}" for item in items)
            return f"\\begin{{{kind}}}\n{lines}\n\\end{{{kind}}}"
        case Aside(title, blocks):
            inside = "\n\n".join(_block(inner, lang) for inner in blocks)
            return f"\\begin{{quote}}\n\\textbf{{{_inline(title)}}}\n\n{inside}\n\\end{{quote}}"
        case _:
            assert_never(block)


def _inline(content: Content) -> str:
    return "".join(map(_span, spans(content)))


def _span(span: Span) -> str:
    match span:
        case str():
            return escape(span)
        case Mono(text):
            return rf"\texttt{{{escape(text)}}}"
        case Strong(text):
            return rf"\textbf{{{escape(text)}}}"
        case Link(text, target):
            address = "" if target.startswith("#") else rf" (\texttt{{{escape(target)}}})"
            return escape(text) + address
        case _:
            return rf"\({_math(span)}\)"


def _math(formula: Formula) -> str:
    """No room between a matrix and its fences."""
    return re.sub(r"\\begin{array}{(\w+)}", r"\\begin{array}{@{}\1@{}}", to_latex(formula))


def _equation(equation: Equation) -> str:
    name = f"\\hspace*{{1.5em}}{_inline(equation.name)}\\nopagebreak\n\n" if equation.name else ""
    shape = "" if equation.shape is None else _math(equation.shape)
    number = f"({escape(equation.number)})" if equation.number else ""
    return f"{name}\\handgradequation{{{_math(equation.formula)}}}{{{shape}}}{{{number}}}"


def _table(table: Table) -> str:
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
    head = " & ".join(rf"\textbf{{{_inline(content)}}}" for content in table.header)
    rows = "\n".join(rf"{' & '.join(map(_inline, line))} \\" for line in table.rows)
    # A long table takes LaTeX two runs to line up.
    kind, repeat = ("longtable", "\\endhead\n") if len(table.rows) > _LONG else ("tabular", "")
    caption = rf"{_inline(table.caption)}\nopagebreak" + "\n\n" if table.caption else ""
    return (
        f"{caption}{{\\{size}\\renewcommand{{\\arraystretch}}{{1.2}}%\n"
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
        case Mono(text) | Strong(text) | Link(text, _):
            return len(text)
        case _:
            return _FORMULA_LENGTH


def _code(text: str) -> str:
    """Not verbatim, in which pdflatex knows no Greek letter and a long line leaves the page."""
    body = "\\\\\n".join(_code_line(line) for line in text.rstrip().split("\n"))
    return rf"{{\small\ttfamily\raggedright {body}\par}}"


def _code_line(line: str) -> str:
    """Its indentation and wider gaps stay as they are; at a single space it may break."""
    spaced = re.sub("^ |  +", lambda gap: "\N{NO-BREAK SPACE}" * len(gap[0]), line)
    return escape(spaced) or "~"
