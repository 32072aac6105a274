"""A formula as Typst mathematics.

Only calls, letters, digits, quoted words and escaped characters are written, so nothing in a
formula can be taken for Typst's own syntax.
"""

from __future__ import annotations

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
)

_ACCENTS = {"hat": "hat", "bar": "macron", "tilde": "tilde", "dot": "dot"}
_BIG = {"sum": "sum", "prod": "product"}


def to_typst(formula: Formula) -> str:
    """Typst source for math mode, without the dollar signs."""
    match formula:
        case Symbol():
            return _symbol(formula)
        case Number(digits):
            return digits
        case Text(text):
            return string(text)
        case Operator(name):
            return f"op({string(name)})"
        case Sign(char):
            return escape(char)
        case Space():
            return "thin"
        case FormulaRow(parts):
            return " ".join(map(to_typst, parts))
        case Fraction(numerator, denominator):
            return f"frac({to_typst(numerator)}, {to_typst(denominator)})"
        case Root(body):
            return f"sqrt({to_typst(body)})"
        case Script(base, sub, sup):
            return _attached(f"scripts({to_typst(base)})", sub, sup)
        case Accent(kind, body):
            mark = "overline" if kind == "bar" and not isinstance(body, Symbol) else _ACCENTS[kind]
            return f"{mark}({to_typst(body)})"
        case Big():
            return _big(formula)
        case Fenced(body, left, _):
            return f"lr({escape(left)} {to_typst(body)} {escape(formula.closing)})"
        case Matrix():
            return _matrix(formula)
        case Cases(rows):
            lines = (f"{to_typst(value)} & quad {to_typst(condition)}" for value, condition in rows)
            return f"cases({', '.join(lines)})"
        case Lines(rows):
            return r" \ ".join(f"{to_typst(left)} & {to_typst(right)}" for left, right in rows)
        case Phantom(body):
            return f"#hide(${to_typst(body)}$)"


def string(text: str) -> str:
    """The text as a string literal of Typst, which keeps every character as it is."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def escape(characters: str) -> str:
    """Signs as themselves. Not for letters and digits: those a backslash would change."""
    return "".join("\\" + character for character in characters)


def _symbol(symbol: Symbol) -> str:
    letter = LETTERS.get(symbol.name, symbol.name)
    if symbol.upright:
        letter = f"upright({letter})"
    return f"bold({letter})" if symbol.bold else letter


def _attached(base: str, below: Formula | None, above: Formula | None) -> str:
    bottom = "" if below is None else f", b: {to_typst(below)}"
    top = "" if above is None else f", t: {to_typst(above)}"
    return f"attach({base}{bottom}{top})"


def _big(big: Big) -> str:
    sign = _BIG.get(big.kind, f"op({string(big.kind)}, limits: #true)")
    return f"{_attached(sign, big.below, big.above)} {to_typst(big.body)}"


def _matrix(matrix: Matrix) -> str:
    fences = (matrix.left, FENCES[matrix.left])
    delim = ", ".join(string(fence) if fence else "none" for fence in fences)
    rows = "; ".join(", ".join(map(to_typst, cells)) for cells in matrix.rows)
    return f"mat(delim: #({delim}), align: #{matrix.align}, {rows})"
