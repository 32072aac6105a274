"""One document with every kind of block, written in every format and read by its reader."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from handgrad.documents import html, markdown, pdf, skeleton, slides, tex
from handgrad.documents.document import (
    Alert,
    Block,
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
    Strong,
    Table,
)
from handgrad.documents.formulas.formula import (
    FENCES,
    LETTERS,
    SIGNS,
    Big,
    Cases,
    Fenced,
    Fraction,
    Lines,
    Number,
    Operator,
    Root,
    Script,
    Sign,
    Symbol,
    Text,
    equals,
    gradient_of,
    row,
    separated,
    transpose,
)
from handgrad.documents.formulas.numbers import matrix, number, shape_of
from handgrad.documents.labels import LABELS, label
from handgrad.documents.tex_text import escape
from handgrad.equations.written import assigned
from handgrad.errors import ArgumentError, HandgradError
from handgrad.ops import OPS

SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" width="640" height="60" viewBox="0 0 640 60">
<rect x="5" y="5" width="90" height="50" fill="none" stroke="currentColor"/>
<text class="backward" x="20" y="35" fill="#a3301c">∂L/∂W₁</text></svg>"""

TIKZ = r"\begin{tikzpicture}\draw (0,0) -- (1,1);\end{tikzpicture}"

HARD = "−×σ²√∂ x̂ᵢ Σ≤ Wᵀ x⁽ⁱ⁾ σ⁻¹ 50 % #1 a_b *c* `d` {e} [f] ~ ^ \\ & $ <g> |h| -- „ăâîșț” “i” 😀"

W1 = Script(Symbol("W"), sub=Number("1"))
X, Y, V, D = (Symbol(name) for name in "xyVD")
#: Notes 001, section 3.
V_VALUES = np.array([[3, 2, 1], [1, 2, 1]])
DY_VALUES = np.array([[3, 2, 5, 1], [2, 2, 2, 1]])


def sample(lang: str) -> Document:
    mean_square = Fraction(Big("sum", Script(X, sup=Number("2")), Symbol("i")), D)
    steps = (equals(X, Y), row(Sign("="), Root(row(X, Sign("+"), Symbol("epsilon")))))
    blocks: tuple[Block, ...] = (
        Paragraph((f"{HARD} ", X, ": ", Link("(1)", "#eq-1"), Mono(" f(a_b, *, c=`1`) "))),
        Heading(label(lang, "forward"), anchor="forward"),
        Equation(equals(Y, mean_square), "1", Fenced(separated((X, D))), name=("y: ", Y)),
        Equation(equals(Y, Cases(((X, row(Text("dacă "), X)), (Y, Text("altfel")))))),
        Equation(Lines((steps, steps)), "2"),
        Heading(("2. ", W1), level=2),
        Equation(
            row(
                equals(gradient_of(W1), row(transpose(V), gradient_of(Y))),
                Sign("="),
                matrix(V_VALUES.T),
                matrix(DY_VALUES),
                Sign("="),
                matrix(V_VALUES.T @ DY_VALUES),
            ),
            "3",
            shape_of(V_VALUES.T @ DY_VALUES),
        ),
        Equation(equals(X, matrix(np.random.default_rng(0).normal(size=(40, 50)))), "4"),
        Equation(assigned(Symbol("K"), np.arange(8).reshape(2, 2, 2) / 3), "5"),
        Equation(equals(Y, number(-np.inf)), anchor="limit"),
        Table((X, HARD, "n"), ((X, "a | b", "1"), ("[c", Mono("d|e"), Strong("23"))), "lcr"),
        Table(("a", "b"), tuple((str(i), "words " * 12) for i in range(40))),
        Figure(SVG, TIKZ, ("Fig. ", W1), "W₁ & its gradient"),
        List((HARD, ("b ", X), Link("c_d", "https://example.org/e_f?g=1&h=2#i"))),
        List(("1. no", "- list")),
        Alert((Strong(HARD), X)),
        Equation(row(Operator("exp"), X)),
        Paragraph("1. no list"),
        Paragraph("- no list"),
    )
    return Document(f"{HARD} {lang}", lang, blocks)


@pytest.fixture(params=sorted(LABELS))
def document(request: pytest.FixtureRequest) -> Document:
    return sample(request.param)


class Reader(HTMLParser):
    """Collects the elements, and asserts that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def page(document: Document) -> str:
    return html.page(document)


def test_html_is_whole_and_fetches_nothing(document: Document, page: str) -> None:
    reader = Reader()
    reader.feed(page)
    assert not reader.open
    assert ("html", {"lang": document.lang}) in reader.found
    tags = {tag for tag, _ in reader.found}
    assert {"math", "table", "svg", "figcaption"} <= tags
    assert not tags & {"script", "link", "img", "iframe", "object"}
    assert re.findall(r"url\((.*?),", page) == ["data:font/woff2;base64"]
    assert "@import" not in page
    for tag, attributes in reader.found:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert tag == "a" or "href" not in attributes


def test_one_file_writes_the_head_of_every_page() -> None:
    package = Path(skeleton.__file__).parents[1]
    texts = {path.name: path.read_text("utf-8").lower() for path in package.rglob("*.py")}
    assert [name for name, text in texts.items() if "<!doctype" in text] == ["skeleton.py"]


def test_html_anchors_are_unique_and_met(page: str) -> None:
    anchors = re.findall(r' id="([^"]*)"', page)
    assert len(set(anchors)) == len(anchors)
    assert {"eq-1", "forward", "limit"} <= set(anchors)
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(anchors)


def test_html_keeps_the_text(page: str) -> None:
    main = ElementTree.fromstring(page[page.index("<main") : page.index("</body>")])
    text = "".join(main.itertext())
    assert text.count(HARD) == 5
    assert "?xml" not in page


def test_html_says_what_scrolls_and_what_is_drawn(page: str) -> None:
    assert page.count('class="formula scroll"') == 8
    assert 'role="img" aria-label="W₁ &amp; its gradient"' in page


def test_the_font_has_what_formulas_and_labels_are_set_with() -> None:
    fonts = pytest.importorskip("fontTools.ttLib")
    pytest.importorskip("brotli")
    folder = Path(html.__file__).parent
    with fonts.TTFont(folder / skeleton.FONT) as font:
        characters = {chr(code) for code in font.getBestCmap()}
        assert font["MATH"].table.MathVariants.VertGlyphCoverage.glyphs
    words = "".join(word for labels in LABELS.values() for word in labels.values())
    fences = "".join((*FENCES, *FENCES.values()))
    assert {*LETTERS.values(), *SIGNS, *fences, *words, *"𝑎𝑧𝐴𝑍ℎ𝛼𝜔𝒂𝑨𝐚𝐀𝛂𝜶∑∏√ᵀᵢ₁⁻"} <= characters
    assert (folder / skeleton.FONT).stat().st_size < 50_000
    assert "SIL OPEN FONT LICENSE" in (folder / "math.LICENSE.txt").read_text("utf-8")


def test_a_fragment_keeps_to_itself(document: Document) -> None:
    fragment = html.fragment(document)
    style = fragment[len("<style>") : fragment.index("</style>")]
    style = re.sub(r"/\*.*?\*/|@media[^{]*\{", "", style)
    font, style = style.split("}", 1)
    assert font.startswith('\n@font-face {\n  font-family: "handgrad math";')
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", style)
    selectors = [selector.strip() for rule in rules for selector in rule.split(",")]
    assert len(selectors) > 50
    assert all(selector.startswith(".handgrad") for selector in selectors)


def test_markdown_has_no_escapes_that_markdown_would_eat(document: Document) -> None:
    text = markdown.render(document)
    formulas = re.findall(r"^(?:> )?\$\$\n(.*?)\n(?:> )?\$\$$", text, re.MULTILINE | re.DOTALL)
    assert len(formulas) == 8
    for formula in formulas:
        assert not re.search(r"\\[^a-zA-Z]", formula)
        assert formula.count("{") == formula.count("}")
    assert r"\tag{3}" in text
    assert r"\begin{array}{rrrr} 11 & 8 & 17 & 4 \cr 10 & 8" in text


def test_markdown_escapes_text(document: Document) -> None:
    text = markdown.render(document)
    assert "\n1\\. no list\n\n\\- no list\n" in text
    assert r"50 % \#1 a\_b \*c\* \`d\` {e} \[f\] \~ ^ \\ & \$ \<g\> |h|" in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {4, 3}
    assert label(document.lang, "figure_elsewhere") in text


def test_tex_is_parsed(document: Document) -> None:
    walker = pytest.importorskip("pylatexenc.latexwalker")
    nodes, _, _ = walker.LatexWalker(tex.render(document), tolerant_parsing=False).get_latex_nodes()
    assert nodes


def test_tex_leaves_no_character_that_pdflatex_lacks(document: Document) -> None:
    beyond = set(re.findall(r"[^\x00-\u017f]", tex.render(document)))
    assert beyond <= set("ȘșȚț")


def test_tex_numbers_equations_by_labels(document: Document) -> None:
    """No command of ours: what stands in an article stands on a slide too."""
    text = tex.render(document)
    labels = re.findall(r"\\label{(.*?)}", text)
    assert len(set(labels)) == len(labels) == 5
    assert labels[0].startswith("eq:x-")
    assert labels[0].endswith(f"-{document.lang}-1")
    assert rf"\eqref{{{labels[0]}}}" in text
    assert text.count(r"\begin{equation}") == 5
    assert text.count(r"\begin{equation*}") == 3
    assert r"\newcommand" not in text


def test_tex_stands_on_a_slide_with_nothing_else(document: Document, tmp_path: Path) -> None:
    """Equations and drawing alone, in a document that knows only the packages they say."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    text = tex.render(document)
    parts = re.findall(r"\\begin{(equation\*?|center)}(.*?)\\end{\1}", text, re.DOTALL)
    body = "\n".join(rf"\begin{{{kind}}}{part}\end{{{kind}}}" for kind, part in parts)
    preamble = r"\documentclass{article}\usepackage{amsmath,graphicx,tikz}"
    slide = f"{preamble}\\begin{{document}}\n{body}\n\\end{{document}}\n"
    (tmp_path / "slide.tex").write_text(slide, "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "slide.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]


def test_tex_has_the_drawing(document: Document) -> None:
    text = tex.render(document)
    assert TIKZ in text
    assert r"% W\(_{1}\) \& its gradient" in text


def test_tex_knows_every_sign_of_labels_and_ops() -> None:
    texts = [word for labels in LABELS.values() for word in labels.values()]
    for op in OPS:
        module = import_module(f"handgrad.ops.{op}")
        texts += [module.__doc__, module.forward.__doc__, module.Cache.__doc__]
    assert not [text for text in texts if "U+" in escape(text)]


def test_tex_escapes() -> None:
    assert escape("a_b & 50 %") == r"a\_b \& 50 \%"
    assert escape("x̂ ŷ γ̂") == r"\(\hat{x}\) ŷ \(\hat{\gamma}\)"
    assert escape("σ⁻¹ xᵢ") == r"\(\sigma\)\(^{-}\)\(^{1}\) x\(_{i}\)"
    assert escape("--") == "-{}-{}"
    assert escape("😀") == r"\texttt{U+1F600}"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pdflatex", "lualatex"])
def test_tex_compiles(engine: str, document: Document, tmp_path: Path) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    (tmp_path / "notes.tex").write_text(tex.render(document), "utf-8")
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", "notes.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-2000:]
    assert "Missing character" not in log


def test_pdf_is_the_same_every_time(document: Document) -> None:
    typst = pytest.importorskip("typst")
    _, warnings = typst.compile_with_warnings(
        pdf.source(document).encode(), ignore_system_fonts=True
    )
    assert not warnings
    first = pdf.render(document)
    assert first.startswith(b"%PDF-")
    assert first == pdf.render(document)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(HandgradError, match=r"needs the package typst.*pip install"):
        pdf.render(sample("en"))


def test_a_drawing_that_is_no_svg_is_a_sentence() -> None:
    pytest.importorskip("typst")
    with pytest.raises(HandgradError, match="Typst could not set the PDF"):
        pdf.render(Document("t", "en", (Figure("<svg", TIKZ, "broken"),)))


def test_every_language_has_every_word() -> None:
    keys = {lang: set(words) for lang, words in LABELS.items()}
    assert {"en", "ro"} <= set(keys)
    assert all(words == keys["en"] for words in keys.values())
    assert all(word for words in LABELS.values() for word in words.values())
    assert not set("şţŞŢ") & set("".join(LABELS["ro"].values())), "comma below, not cedilla"


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(ArgumentError, match="lang 'fr' is not known; allowed: en, ro"):
        label("fr", "forward")


def test_what_is_folded_is_a_heading_where_nothing_can_be_opened() -> None:
    inside = Details("With a word", (Paragraph("Further in."),))
    folded = Document("x", blocks=(Details("At edges", (inside,), level=1, anchor="edges"),))
    assert '<details id="edges">\n<summary><h2>At edges</h2></summary>' in html.page(folded)
    assert "details::details-content" in html.page(folded).partition("@media print")[2]
    assert markdown.render(folded) == "# x\n\n## At edges\n\nWith a word\n\nFurther in.\n"
    assert r"\section*{\raggedright At edges}" in tex.render(folded)
    assert "#heading(level: 1, [#" in pdf.source(folded)


def test_the_title_of_a_work_is_emphasised() -> None:
    cited = Document("x", blocks=(Paragraph(("Kingma, Ba, ", Emphasis("Adam"), " (2015).")),))
    assert "Kingma, Ba, <cite>Adam</cite> (2015)." in html.page(cited)
    assert r"Kingma, Ba, *Adam* (2015)." in markdown.render(cited)
    assert r"Kingma, Ba, \emph{Adam} (2015)." in tex.render(cited)
    assert '#emph("Adam");' in pdf.source(cited)


def test_a_slide_has_one_equation(document: Document) -> None:
    sections = re.split(r"<section[^>]*>", slides.page(document))[1:]
    counts = [each.count('class="equation"') for each in sections]
    assert max(counts) == 1
    equations = [each for each in document.blocks if isinstance(each, Equation)]
    assert sum(counts) == len(equations)
    assert slides.source(document).count("#pagebreak()") == len(sections)
    assert sections[0].startswith("\n<h1>")


def test_words_go_with_the_equation_that_they_are_about() -> None:
    one, other = (Equation(Symbol(each)) for each in "ab")
    blocks = (one, Paragraph("where a is one."), Paragraph("For t = 1:"), other)
    first, second = slides.slides(Document("x", blocks=blocks))
    assert first.blocks == blocks[:2]
    assert second.blocks == blocks[2:]


def test_what_fills_a_slide_has_one_of_its_own() -> None:
    words = Paragraph("a word " * 30)
    equation = Equation(Symbol("a"))
    document = Document("x", blocks=(words, equation, words, words))
    assert [each.blocks for each in slides.slides(document)] == [
        (words,),
        (equation,),
        (words,),
        (words,),
    ]


def test_a_long_table_has_several_slides_with_its_header() -> None:
    rows = tuple((str(i), "b") for i in range(14))
    parts = slides.slides(Document("x", blocks=(Table(("a", "b"), rows),)))
    tables = [each.blocks[0] for each in parts]
    assert all(isinstance(each, Table) and each.header == ("a", "b") for each in tables)
    assert sum((each.rows for each in tables if isinstance(each, Table)), ()) == rows
    assert len(tables) == 3


def test_a_long_equation_is_written_smaller() -> None:
    short, long = (Equation(row(*[Symbol("a")] * count)) for count in (9, 50))
    page = slides.page(Document("x", blocks=(short, long)))
    assert page.count("<section>") == page.count('<section class="long">') == 1
