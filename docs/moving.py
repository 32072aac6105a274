"""The README's moving picture: a forward pass, and then its gradients on their way back.

Typst sets every equation of `hg.notes("layer_norm", numbers=True)` as outlines, which need no font;
the style of the SVG shows one after the other, without a script. It stands still, on the last of
them, for those who ask their browser for less motion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import handgrad as hg
from handgrad.documents.document import Equation, Heading
from handgrad.documents.formulas.formula import Lines, row
from handgrad.documents.formulas.typst import to_typst

PICTURE: Final = Path(__file__).parent / "images" / "backward.svg"
TITLE: Final = "handgrad notes layer_norm --numbers --alive"
SPOKEN: Final = "Layer normalisation, equation by equation: six forward, then six backward"
#: Points: the whole, a column, a line of it, where the first line is, and the room at the edges.
WIDTH, HEIGHT, COLUMN, LINE, TOP, EDGE = 540, 362, 246, 30, 56, 16
#: Seconds for which an equation is shown, more for the last, and for what fades in.
STEP, REST, FADE = 2.2, 3.0, 0.35

PREAMBLE: Final = f"""
#set page(width: {WIDTH}pt, height: {HEIGHT}pt, margin: 0pt, fill: none)
#set text(font: "New Computer Modern")
#show math.equation: set text(font: "New Computer Modern Math")
#show raw: set text(font: "DejaVu Sans Mono")
#let fit(width, height, body) = context {{
  let size = measure(body)
  let ratio = calc.min(1, width / size.width, height / size.height) * 100%
  scale(ratio, origin: left + horizon, reflow: true, body)
}}
#let put(x, y, width, height, size, body) = place(dx: x, dy: y, box(width: width, height: height,
  align(left + horizon, fit(width, height, text(size: size, body)))))
"""
STYLE: Final = """
svg { --ink: #1d1b18; --paper: #fffefb; --line: #d8d5ce; --forward: #17568f; --backward: #a3301c }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e7e4de; --paper: #16181b; --line: #3a3d42; --forward: #8ebcf0; --backward: #f0a08c }
}
.card { fill: var(--paper); stroke: var(--line) }
use { fill: var(--ink) }
.rule, .way, .mark { stroke: var(--ink); fill: none }
.forward { --ink: var(--forward) }
.backward { --ink: var(--backward) }
.mark, .board:not(:last-of-type) { opacity: 0 }
"""


class Step(NamedTuple):
    """An equation with its numbers, where it stands in the list, and when it is shown, in %."""

    phase: str
    formula: Lines
    y: int
    begin: float
    end: float

    @property
    def x(self) -> int:
        return _column(self.phase)


def _column(phase: str) -> int:
    return EDGE + 22 + (COLUMN + 14) * (phase == "backward")


def equations() -> Iterator[tuple[str, Lines]]:
    """The phase of each equation of the notes, and it with its numbers."""
    phase = ""
    for block in hg.notes("layer_norm", numbers=True, measure=None).document.blocks:
        if isinstance(block, Heading):
            phase = block.anchor
        elif isinstance(block, Equation) and block.number and phase in ("forward", "backward"):
            assert isinstance(block.formula, Lines)
            yield phase, block.formula


def steps() -> list[Step]:
    """Values go down the first column, gradients up the second."""
    every = list(equations())
    half = sum(phase == "forward" for phase, _ in every)
    found = []
    for k, (phase, formula) in enumerate(every):
        line = k if phase == "forward" else len(every) - 1 - k
        end = STEP * (k + 1) + REST * (k == len(every) - 1)
        times = (100 * each / seconds(len(every)) for each in (STEP * k, end))
        found.append(Step(phase, formula, TOP + LINE * min(line, half - 1), *times))
    return found


def seconds(count: int) -> float:
    return count * STEP + REST


def put(x: float, y: float, width: float, height: float, size: float, body: str) -> str:
    return f"#put({x}pt, {y}pt, {width}pt, {height}pt, {size}pt, [{body}])\n"


def outlines(pages: list[str]) -> tuple[str, list[str]]:
    """The letters that the pages share, and each page drawn with them."""
    import typst

    source = (PREAMBLE + "#pagebreak()\n".join(pages)).encode()
    names: dict[str, str] = {}
    letters, drawn = "", []
    for page in typst.compile(source, format="svg", ignore_system_fonts=True):
        text = page.decode()
        for name, path in re.findall(r'<symbol id="(\w+)"[^>]*>(.*?)</symbol>', text, re.DOTALL):
            if name not in names:
                names[name] = f"g{len(names)}"
                letters += path.replace("<path", f'<path id="{names[name]}"', 1)
        (body,) = re.findall(r"<svg[^>]*>(.*)</svg>", text, re.DOTALL)
        body = re.sub(r"<defs.*?</defs>", "", body, flags=re.DOTALL)
        used = re.compile(r'<use xlink:href="#(\w+)" x="([^"]*)" y="0"[^>]*/>')
        body = used.sub(lambda use: f'<use href="#{names[use[1]]}" x="{use[2]}"/>', body)
        body = body.replace(' x="0"/>', "/>")
        drawn.append(body.replace('fill="none" stroke="#000000"', 'class="rule"'))
    return letters, drawn


def motion(every: list[Step]) -> str:
    """An equation is faint before its time; its numbers are there during it."""
    whole = seconds(len(every))
    rules = ""
    for k, step in enumerate(every):
        there, gone = step.begin + 100 * FADE / whole, step.end - 0.01
        begin, end = f"{step.begin:.2f}%", f"{step.end:.2f}%"
        rules += (
            f"@keyframes b{k} {{ 0%, {begin}, {end}, 100% {{ opacity: 0 }} "
            f"{there:.2f}%, {gone:.2f}% {{ opacity: 1 }} }}\n"
            f"@keyframes l{k} {{ 0%, {begin} {{ opacity: 0.25 }} "
            f"{there:.2f}%, 100% {{ opacity: 1 }} }}\n"
            f".b{k} {{ animation: b{k} {whole}s infinite }} "
            f".l{k} {{ animation: l{k} {whole}s infinite }}\n"
        )
    return f"@media (prefers-reduced-motion: no-preference) {{\n{rules}}}\n"


def picture() -> str:
    every = steps()
    bottom = max(step.y for step in every) + LINE
    phases = ("forward", "backward")
    pages = [put(EDGE, 12, WIDTH, 14, 9, f"`{TITLE}`")]
    pages += [put(_column(phase), TOP - 22, COLUMN, 14, 11, f"*{phase}*") for phase in phases]
    for step in every:
        first = to_typst(row(*step.formula.rows[0]))
        pages.append(put(step.x, step.y + 2, COLUMN - 40, LINE - 4, 10, f"$ {first} $"))
    for step in every:
        wide, high = WIDTH - 2 * EDGE - 40, HEIGHT - bottom - 40
        pages.append(put(EDGE + 22, bottom + 26, wide, high, 12, f"$ {to_typst(step.formula)} $"))
    letters, drawn = outlines(pages)
    title, heads = drawn[0], drawn[1:3]
    listed, boards = drawn[3 : 3 + len(every)], drawn[3 + len(every) :]
    parts = [
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>'
    ]
    parts.append(title)
    for phase, head, (start, end, tip) in zip(
        phases, heads, ((TOP, bottom, 5), (bottom, TOP, -5)), strict=True
    ):
        way = f"M{_column(phase) - 14} {start}V{end}m-4 {-tip}l4 {tip} 4 {-tip}"
        parts.append(f'<g class="{phase}">{head}<path class="way" d="{way}"/></g>')
    for k, (step, body) in enumerate(zip(every, listed, strict=True)):
        place = f'x="{step.x - 7}" y="{step.y}" width="{COLUMN - 28}" height="{LINE - 1}" rx="4"'
        mark = f'<rect class="mark b{k}" {place}/>'
        parts.append(f'<g class="{step.phase}"><g class="l{k}">{body}</g>{mark}</g>')
    parts.append(f'<path class="card" d="M{EDGE} {bottom + 16}H{WIDTH - EDGE}"/>')
    for k, (step, body) in enumerate(zip(every, boards, strict=True)):
        parts.append(f'<g class="board {step.phase} b{k}">{body}</g>')
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{1.6 * WIDTH:.0f}" height="{1.6 * HEIGHT:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{SPOKEN}</title>\n'
        f"<style>{STYLE}{motion(every)}</style>\n<defs>{letters}</defs>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> None:
    PICTURE.write_text(picture(), "utf-8")
