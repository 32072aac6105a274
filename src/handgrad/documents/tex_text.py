"""Text for LaTeX that every engine can set: escaped, and as mathematics where its fonts lack it."""

from __future__ import annotations

import re
import unicodedata

from handgrad.documents.formulas.latex import LETTER_COMMANDS, SIGN_COMMANDS

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "-": "-{}",  # two would become a dash
    "[": "{[}",  # after the end of a line it would open an option
    "*": "{*}",
    "\N{NO-BREAK SPACE}": "~",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "’": "'",
    "‘": "`",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "„": r"\quotedblbase{}",
    "•": r"\textbullet{}",
    "°": r"\textdegree{}",
    "§": r"\S{}",
}

_MATH = {
    **SIGN_COMMANDS,
    **LETTER_COMMANDS,
    "⊕": r"\oplus",
    "∫": r"\int",
    "√": r"\surd",
    "∑": r"\sum",
    "∏": r"\prod",
    "‖": r"\Vert",
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "⌊": r"\lfloor",
    "⌋": r"\rfloor",
    "⌈": r"\lceil",
    "⌉": r"\rceil",
    "⇒": r"\Rightarrow",
    "↔": r"\leftrightarrow",
    "ᵀ": r"^{\top}",
}

_SCRIPTS = {"<super>": "^", "<sub>": "_"}
_COMBINING = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0307": "dot"}


def escape(text: str) -> str:
    """Text for LaTeX: what means something to it escaped, what its fonts lack as mathematics.

    Letters with accents stay; a character that is not known is named by its code point.
    """
    combining = "".join(_COMBINING)
    parts = re.findall(rf".[{combining}]|.|\n", unicodedata.normalize("NFC", text))
    return "".join(map(_character, parts))


def _character(part: str) -> str:
    if len(part) == 2:
        letter = LETTER_COMMANDS.get(part[0], part[0])
        return rf"\(\{_COMBINING[part[1]]}{{{letter}}}\)"
    if part in _ESCAPES:
        return _ESCAPES[part]
    if part in _MATH:
        return rf"\({_MATH[part]}\)"
    kind = unicodedata.decomposition(part).split(" ")[0]
    if kind in _SCRIPTS:
        plain = "".join(_MATH.get(each, each) for each in unicodedata.normalize("NFKC", part))
        return rf"\({_SCRIPTS[kind]}{{{plain}}}\)"
    if part < "\u0180" or part in "ȘșȚț":
        return part
    return rf"\texttt{{U+{ord(part):04X}}}"
