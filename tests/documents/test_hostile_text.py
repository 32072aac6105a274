"""Text from a user's source cannot become markup or a command in any format of the notes."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from handgrad.documents import html, markdown, pdf, tex
from handgrad.documents.document import (
    Document,
    Heading,
    List,
    Mono,
    Paragraph,
    Strong,
    Table,
)
from handgrad.documents.formulas.formula import Operator, Symbol
from handgrad.errors import ArgumentError

HOSTILE = [
    "</script><script>alert(1)</script>",
    "</style></title></code></pre><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    r"\input{/etc/passwd} \write18{id} $\catcode`\%=12$ ^^5cinput",
    r"}\end{verbatim}\end{lstlisting}\end{document}",
    '#read("/etc/passwd") #import "x.typ": * #eval("1") ```',
    '") + read("/etc/passwd") + ("',
    "[link](javascript:alert(1)) ![x](http://example.org) <http://example.org>",
    "$$ \n$$\n# heading\n---\n| a | b |",
    "```\n</code>\n~~~\n",
    "é \N{RIGHT-TO-LEFT OVERRIDE} \N{ZERO WIDTH SPACE} \x01 \N{GRINNING FACE}",
]


def _document(text: str) -> Document:
    return Document(
        text,
        "en",
        (
            Heading(text),
            Paragraph((text, Mono(text), Strong(text))),
            List((text, Mono(text))),
            Table((text, Mono(text)), ((text, Mono(text)),)),
        ),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_no_part_of_a_formula_takes_it(text: str) -> None:
    for part in (Operator, Symbol):
        with pytest.raises(ArgumentError):
            part(text)


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


@pytest.mark.parametrize("text", HOSTILE)
def test_html_has_the_same_tags_as_with_a_plain_word(text: str) -> None:
    assert _Tags(html.page(_document(text))).found == _Tags(html.page(_document("word"))).found


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_has_no_command_of_the_text(text: str) -> None:
    found = tex.render(_document(text))
    for command in (r"\input{", r"\write", r"\catcode", r"\end{lstlisting}", "^^5c"):
        assert command not in found
    assert found.count(r"\end{document}") == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_typst_has_the_text_only_in_strings(text: str) -> None:
    found = pdf.source(_document(text))
    code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', found)
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', '""', pdf.source(_document("word")))
    for word in ("read", "import", "eval", "script"):
        assert code.count(word) == plain.count(word)
    assert "```" not in code


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_has_no_tag_and_no_link_of_the_text(text: str) -> None:
    found = markdown.render(_document(text))
    outside = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", found)
    assert not re.search(r"(?<!\\)<(?:/?[a-z]|http)", outside)
    assert not re.search(r"(?<!\\)\]\(", outside)
