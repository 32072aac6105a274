"""Write the tables of docs/notation.md: the symbols of all pages, from the table of their words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from handgrad.documents.formulas.formula import (
    FENCES,
    LETTERS,
    Accent,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
)
from handgrad.equations.notation import WORDS

PAGE: Final = Path(__file__).with_name("notation.md")
_BEGIN: Final = "| symbol | meaning | in the code |\n| :-- | :-- | :-- |\n"
#: Combining accents, and what has a raised form.
_ACCENTS: Final = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303"}
_RAISED: Final = {"2": "²", "+": "⁺", "−": "⁻", "∗": "*", "′": "′"}


def plain(formula: Formula) -> str:
    """A symbol as a line of text: σ²_ε, 1/‖s‖_ε, x̃."""
    match formula:
        case Symbol(name):
            return LETTERS.get(name, name)
        case Number(said) | Text(said) | Sign(said):
            return said
        case FormulaRow(parts):
            return "".join(map(plain, parts))
        case Accent(kind, body):
            return plain(body) + _ACCENTS[kind]
        case Fenced(body, left):
            return f"{left}{plain(body)}{FENCES[left]}"
        case Fraction(above, below):
            return f"{plain(above)}/{plain(below)}"
        case Script(base, sub, sup):
            raised = "" if sup is None else "".join(_RAISED[each] for each in plain(sup))
            return plain(base) + raised + ("" if sub is None else f"_{plain(sub)}")
    raise NotImplementedError(type(formula).__name__)


def rows() -> str:
    """A row for each symbol and meaning, with all words of code that have both."""
    found: dict[tuple[Formula, str], list[str]] = {}
    for name, word in WORDS.items():
        found.setdefault(tuple(word), []).append(f"`{name}`")
    several = sorted(found.items(), key=lambda each: plain(each[0][0]).casefold())
    return "".join(
        f"| {plain(symbol)} | {meaning} | {', '.join(names)} |\n"
        for (symbol, meaning), names in several
    )


def written(page: str) -> str:
    """The page with the rows of its table anew."""
    before, _, after = page.partition(_BEGIN)
    return before + _BEGIN + rows() + after[after.index("\n## ") :]


def main() -> int:
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
