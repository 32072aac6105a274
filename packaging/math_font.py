"""Write the font of formulas that every page of notes carries: a subset of STIX Two Math.

    npm pack @fontsource/stix-two-math@5.3.0 && tar xzf fontsource-stix-two-math-5.3.0.tgz
    pip install fonttools brotli
    PYTHONPATH=src python packaging/math_font.py package

It keeps what formulas and the fixed words of the notes are made of, and all sizes of what grows.
The same package and version of fonttools give the same bytes.
"""

from __future__ import annotations

import shutil
import string
import sys
import unicodedata
from pathlib import Path
from typing import Final

from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from handgrad.documents.formulas.formula import FENCES, LETTERS, SIGNS
from handgrad.documents.formulas.mathml import ACCENTS, BOLD
from handgrad.documents.labels import LABELS
from handgrad.documents.skeleton import FONT

FOLDER: Final = Path(__file__).parents[1] / "src" / "handgrad" / "documents"
ORIGINAL: Final = Path("files", "stix-two-math-latin-400-normal.woff2")
#: The letters that `<mi>` sets slanted: the first of each alphabet, and ℎ and ℏ, which lie apart.
SLANTED: Final = {"A": 0x1D434, "a": 0x1D44E, "Α": 0x1D6E2, "α": 0x1D6FC}
ALONE: Final = "ℎϵϑϰϕϱϖ𝜕𝜖𝜗𝜘𝜙𝜚𝜛𝝏𝝐𝝑𝝒𝝓𝝔𝝕"
#: Signs of docstrings, which the fonts of a bare machine may lack, and spaces.
TEXT: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁱⁿ₀₁₂₃₄₅₆₇₈₉₊₋₍₎½¼√∑∏∫⊖⇒↔⇔…–—°§\u00a0\u2009\u2061\u2062"
#: Letters in scripts, which STIX Two Math lacks and which are made of its letters, and the height
#: of their baseline, in thousandths of an em.
SCRIPTS: Final = "ᵀˣᵢⱼₜ"
BASELINES: Final = {"<super>": 360, "<sub>": -150}
SCALE: Final = 0.66
#: ssty is the shape of letters in scripts.
FEATURES: Final = ("ssty", "ccmp", "mark", "mkmk")


def characters() -> set[str]:
    """Everything a formula or a text of the notes can be set with."""
    alphabets = [*SLANTED.values(), *BOLD.values()]
    letters = {chr(first + i) for first in alphabets for i in range(26)} | set(LETTERS.values())
    words = "".join(word for labels in LABELS.values() for word in labels.values())
    accents = set("".join(ACCENTS.values())) | set("\u0302\u0303\u0304\u0307")
    fences = set("".join((*FENCES, *FENCES.values())))
    printed = set(string.printable) - set(string.whitespace) | {" "}
    signs = SIGNS | fences | accents | printed | set(ALONE + TEXT)
    return letters | signs | set(words + SCRIPTS)


def add_scripts(font: TTFont) -> None:
    names, widths = font.getBestCmap(), font["hmtx"]
    for character in SCRIPTS:
        kind, code = unicodedata.decomposition(character).split()
        letter = names[int(code, 16)]
        pen = TTGlyphPen(font.getGlyphSet())
        pen.addComponent(letter, (SCALE, 0, 0, SCALE, 0, BASELINES[kind]))
        name = f"uni{ord(character):04X}"
        font["glyf"][name] = pen.glyph()
        widths[name] = tuple(round(SCALE * each) for each in widths[letter])
        for table in font["cmap"].tables:
            if table.isUnicode():
                table.cmap[ord(character)] = name


def main(package: Path) -> None:
    options = Options()
    options.flavor = "woff2"
    options.hinting = False
    options.layout_features = list(FEATURES)
    options.name_IDs = [0, 1, 2, 4, 5, 6, 13, 14]
    font = TTFont(package / ORIGINAL, recalcTimestamp=False)
    add_scripts(font)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=map(ord, characters()))
    subsetter.subset(font)
    font.flavor = options.flavor
    font.save(FOLDER / FONT)
    shutil.copyfile(package / "LICENSE", (FOLDER / FONT).with_suffix(".LICENSE.txt"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
