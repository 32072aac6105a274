"""A formula as LaTeX: amsmath alone, and only commands that MathJax knows too."""

from __future__ import annotations

from itertools import pairwise

from handgrad.documents.formulas.formula import (
    FENCES,
    LETTERS,
    Accent,
    Big,
    Cases,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Lines,
    Matrix,
    Number,
    Operator,
    Phantom,
    Root,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    is_tall,
)

#: ε and φ as they are written by hand, and what has another name in LaTeX.
_LETTER_COMMANDS = {"epsilon": "varepsilon", "phi": "varphi", "infinity": "infty"}

LETTER_COMMANDS = {
    character: "\\" + _LETTER_COMMANDS.get(name, name) for name, character in LETTERS.items()
}

SIGN_COMMANDS = {
    "−": "-",
    "±": r"\pm",
    "×": r"\times",
    "·": r"\cdot",
    "⊙": r"\odot",
    "⊗": r"\otimes",
    "∗": r"\ast",
    "∘": r"\circ",
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "≈": r"\approx",
    "≡": r"\equiv",
    "∈": r"\in",
    "∉": r"\notin",
    "∝": r"\propto",
    "→": r"\rightarrow",
    "←": r"\leftarrow",
    "↦": r"\mapsto",
    "∧": r"\wedge",
    "∨": r"\vee",
    "¬": r"\neg",
    "∣": r"\mid",
    "⋯": r"\cdots",
    "⋮": r"\vdots",
    "⋱": r"\ddots",
    "⊤": r"\top",
    "′": r"\prime",
    "∅": r"\emptyset",
}

#: Not `|`, which would end a cell of a Markdown table, and not `\{`, which Markdown unescapes.
_FENCE_COMMANDS = {
    "{": r"\lbrace",
    "}": r"\rbrace",
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "⌊": r"\lfloor",
    "⌋": r"\rfloor",
    "⌈": r"\lceil",
    "⌉": r"\rceil",
    "": ".",
}

#: Ends a row with fractions; Markdown does without the room it asks for.
TALL_ROW_END = r"\\[3pt]"

#: Fences that need no \left and \right around a flat body.
_PLAIN = frozenset("()[]")

_FUNCTIONS = frozenset(["cos", "cosh", "exp", "ln", "log", "max", "min", "sin", "sinh", "tanh"])
_WIDE = {"hat": "widehat", "bar": "overline", "tilde": "widetilde", "dot": "dot"}


def to_latex(formula: Formula) -> str:
    """LaTeX for math mode, without the dollar signs."""
    match formula:
        case Symbol():
            return _symbol(formula)
        case Number(digits):
            return digits
        case Text(text):
            return r"\text{" + text.replace("_", r"\_") + "}"
        case Operator(name):
            return _function(name)
        case Sign(char):
            return SIGN_COMMANDS.get(char, char)
        case Space():
            return r"\thinspace"
        case FormulaRow(parts):
            return _row(parts)
        case Fraction(numerator, denominator):
            return rf"\frac{{{to_latex(numerator)}}}{{{to_latex(denominator)}}}"
        case Root(body):
            return rf"\sqrt{{{to_latex(body)}}}"
        case Script(base, sub, sup):
            return _base(base) + _scripts(sub, sup)
        case Accent(kind, body):
            mark = kind if isinstance(body, Symbol) else _WIDE[kind]
            return rf"\{mark}{{{to_latex(body)}}}"
        case Big():
            return _big(formula)
        case Fenced():
            return _fenced(formula)
        case Matrix():
            return _matrix(formula)
        case Cases(rows):
            return rf"\begin{{cases}} {_table(rows)} \end{{cases}}"
        case Lines(rows):
            return rf"\begin{{aligned}} {_table(rows)} \end{{aligned}}"
        case Phantom(body):
            return rf"\phantom{{{to_latex(body)}}}"


def _row(parts: tuple[Formula, ...]) -> str:
    latex = " ".join(map(to_latex, parts)).replace(" , ", ", ")
    return "-" + latex[2:] if latex.startswith("- ") else latex


def _symbol(symbol: Symbol) -> str:
    command = LETTER_COMMANDS[LETTERS[symbol.name]] if symbol.name in LETTERS else symbol.name
    if symbol.bold:
        return rf"\mathbf{{{command}}}" if symbol.upright else rf"\boldsymbol{{{command}}}"
    return rf"\mathrm{{{command}}}" if symbol.upright else command


def _function(name: str) -> str:
    return "\\" + name if name in _FUNCTIONS else rf"\operatorname{{{name}}}"


def _base(base: Formula) -> str:
    """Braces keep `a_{i}` from running into the scripts of what it carries."""
    return to_latex(base) if isinstance(base, Symbol | Text | Number) else f"{{{to_latex(base)}}}"


def _scripts(sub: Formula | None, sup: Formula | None) -> str:
    below = "" if sub is None else f"_{{{to_latex(sub)}}}"
    above = "" if sup is None else f"^{{{to_latex(sup)}}}"
    return below + above


def _big(big: Big) -> str:
    if big.kind in ("sum", "prod"):
        name = "\\" + big.kind
    else:
        name = rf"\operatorname*{{{big.kind}}}"
    return f"{name}{_scripts(big.below, big.above)} {to_latex(big.body)}"


def _fenced(fenced: Fenced) -> str:
    left, right, body = fenced.left, fenced.closing, to_latex(fenced.body)
    if left in _PLAIN and right in _PLAIN and not is_tall(fenced.body):
        return f"{left}{body}{right}"
    return rf"\left{_fence(left, 'l')} {body} \right{_fence(right, 'r')}"


def _fence(fence: str, side: str) -> str:
    if fence in ("|", "‖"):
        return rf"\{side}{'vert' if fence == '|' else 'Vert'}"
    return _FENCE_COMMANDS.get(fence, fence)


def _matrix(matrix: Matrix) -> str:
    body = _table(matrix.rows)
    columns = ("r" if matrix.align == "right" else "c") * len(matrix.rows[0])
    array = rf"\begin{{array}}{{{columns}}} {body} \end{{array}}"
    if not matrix.left:
        return array
    left, right = _fence(matrix.left, "l"), _fence(FENCES[matrix.left], "r")
    return rf"\left{left} {array} \right{right}"


def _table(rows: tuple[tuple[Formula, ...], ...]) -> str:
    latex = " & ".join(map(_cell, rows[0]))
    for above, cells in pairwise(rows):
        end = TALL_ROW_END if any(map(is_tall, above)) else r"\\"
        latex += f" {end} " + " & ".join(map(_cell, cells))
    return latex


def _cell(cell: Formula) -> str:
    """Not starting with a bracket, which the end of the row before would take for its own."""
    latex = to_latex(cell)
    return "{}" + latex if latex.startswith("[") else latex
