"""A formula as MathML Core, which browsers set by themselves.

MathML Core has no `mathvariant` but "normal", no named spaces, and no idea that a word is a
function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Final

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
    row,
)

#: What fonts have for an accent over one letter, and over several.
ACCENTS: Final = {"hat": "ˆ\u0302", "tilde": "˜\u0303", "bar": "¯¯", "dot": "˙˙"}

#: (upright, first letter) -> the first code point of its alphabet among the bold letters.
BOLD: Final = {
    (True, "A"): 0x1D400,
    (True, "a"): 0x1D41A,
    (True, "Α"): 0x1D6A8,
    (True, "α"): 0x1D6C2,
    (False, "A"): 0x1D468,
    (False, "a"): 0x1D482,
    (False, "Α"): 0x1D71C,
    (False, "α"): 0x1D736,
}

#: Letters that stand upright, where MathML would slant a letter that is alone.
_UPRIGHT: Final = frozenset("ΓΔΘΛΞΠΣΥΦΨΩ∞∇")
#: Signs that are values, and those that end one.
_VALUES: Final = frozenset("∅⊤")
_ENDING: Final = frozenset("!′")
_SIGNED: Final = frozenset("−+±")
_BIG: Final = {"sum": "∑", "prod": "∏"}
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_THIN: Final = '<mspace width="0.167em"/>'


def to_mathml(formula: Formula, *, display: bool = False) -> str:
    """A `<math>` element, as a block of its own with `display`."""
    kind = "block" if display else "inline"
    opening = f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="{kind}">'
    # Under a page's `math { display: inline-block }`, parts that are in no row would be stacked.
    return f"{opening}<mrow>{_within(formula)}</mrow></math>"


def _written(formula: Formula) -> str:
    """One element."""
    match formula:
        case Symbol():
            return _symbol(formula)
        case Number(digits):
            return f"<mn>{digits}</mn>"
        case Text(text):
            return f"<mtext>{escape(text, quote=False).replace(' ', _NO_BREAK)}</mtext>"
        case Operator(name):
            return _letter(name, upright=len(name) == 1)
        case Sign(char):
            return _letter(char, upright=True) if char in _VALUES else _operator(char)
        case Space():
            return _THIN
        case FormulaRow():
            return f"<mrow>{_within(formula)}</mrow>"
        case Fraction(numerator, denominator):
            return f"<mfrac>{_one(numerator)}{_one(denominator)}</mfrac>"
        case Root(body):
            return f"<msqrt>{_within(body)}</msqrt>"
        case Script(base, sub, sup):
            return _scripts("sub", "sup", _one(base), sub, sup)
        case Accent(kind, body):
            wide = not isinstance(body, Symbol)
            mark = _operator(ACCENTS[kind][wide], stretchy=wide)
            return f'<mover accent="true">{_one(body)}{mark}</mover>'
        case Big(kind, _, below, above):
            name = _operator(_BIG[kind]) if kind in _BIG else f"<mi>{kind}</mi>"
            return _scripts("under", "over", name, below, above)
        case Fenced(body, left, _):
            return _fenced(_within(body), left, formula.closing, is_tall(body))
        case Matrix(rows, left, align):
            return _fenced(_table(rows, (align,) * len(rows[0])), left, FENCES[left], True)
        case Cases(rows):
            return _fenced(_table(rows, ("left", "left")), "{", "", True)
        case Lines(rows):
            room = 'displaystyle="true" columnspacing="0em" rowspacing="3pt"'
            return _table(rows, ("right", "left"), room)
        case Phantom(body):
            return f"<mphantom>{_within(body)}</mphantom>"


def _within(formula: Formula) -> str:
    """The elements of a formula, with the room between them."""
    written, before = "", None
    for part in _pieces(formula):
        if isinstance(part, Sign) and part.char in _SIGNED and _awaits_value(before):
            written += _operator(part.char, form="prefix")
        elif before is not None and _is_apart(before, part):
            written += _THIN + _written(part)
        else:
            written += _written(part)
        before = part
    return written


def _one(formula: Formula) -> str:
    """The formula as one element."""
    pieces = list(_pieces(formula))
    return _written(pieces[0]) if len(pieces) == 1 else f"<mrow>{_within(formula)}</mrow>"


def _pieces(formula: Formula) -> Iterator[Formula]:
    """The parts that stand beside each other in one row: the body of a sum follows its sign."""
    match formula:
        case FormulaRow(parts):
            for part in parts:
                yield from _pieces(part)
        case Big(body=body) if body != row():
            yield replace(formula, body=row())
            yield from _pieces(body)
        case _:
            yield formula


def _awaits_value(before: Formula | None) -> bool:
    """Whether a minus after this is the sign of what follows it."""
    match before:
        case Sign(char):
            return char not in _VALUES | _ENDING
        case None | Big() | Operator() | Space():
            return True
    return False


def _is_apart(before: Formula, after: Formula) -> bool:
    """Whether the name of a function needs room at this side of it."""
    if _is_function(before):
        return not _begins_with_operator(after)
    return _is_function(after) and not (isinstance(before, Space | Sign) and _awaits_value(before))


def _is_function(part: Formula) -> bool:
    match part:
        case Script(base=base):
            return _is_function(base)
        case Big(kind):
            return kind not in _BIG
    return isinstance(part, Operator)


def _begins_with_operator(part: Formula) -> bool:
    match part:
        case Sign(char):
            return char not in _VALUES
        case Script(base=base):
            return _begins_with_operator(base)
    return isinstance(part, Space | Fenced | Cases) or (
        isinstance(part, Matrix) and part.left != ""
    )


def _symbol(symbol: Symbol) -> str:
    letter = LETTERS.get(symbol.name, symbol.name)
    if symbol.bold:
        return f"<mi>{_bold(letter, symbol.upright)}</mi>"
    return _letter(letter, symbol.upright or letter in _UPRIGHT)


def _letter(letter: str, upright: bool) -> str:
    return f'<mi mathvariant="normal">{letter}</mi>' if upright else f"<mi>{letter}</mi>"


def _bold(letter: str, upright: bool) -> str:
    for (kind, first), code in BOLD.items():
        if kind == upright and 0 <= ord(letter) - ord(first) < 26:
            return chr(code + ord(letter) - ord(first))
    return letter


def _operator(char: str, form: str = "", stretchy: bool | None = None) -> str:
    attributes = f' form="{form}"' if form else ""
    if stretchy is not None:
        attributes += f' stretchy="{str(stretchy).lower()}"'
    return f"<mo{attributes}>{escape(char, quote=False)}</mo>"


def _scripts(low: str, high: str, base: str, sub: Formula | None, sup: Formula | None) -> str:
    kinds = ("" if sub is None else low) + ("" if sup is None else high)
    scripts = "".join(_one(each) for each in (sub, sup) if each is not None)
    return f"<m{kinds}>{base}{scripts}</m{kinds}>" if kinds else base


def _fenced(inside: str, left: str, right: str, tall: bool) -> str:
    """Fonts give a fence that may stretch too much room where it need not."""
    opening = _operator(left, "prefix", tall) if left else ""
    closing = _operator(right, "postfix", tall) if right else ""
    return f"<mrow>{opening}{inside}{closing}</mrow>"


def _table(
    rows: tuple[tuple[Formula, ...], ...], columns: tuple[str, ...], attributes: str = ""
) -> str:
    lines = (
        "".join(
            f'<mtd columnalign="{align}">{_within(cell)}</mtd>'
            for align, cell in zip(columns, cells, strict=True)
        )
        for cells in rows
    )
    body = "".join(f"<mtr>{line}</mtr>" for line in lines)
    return f"<mtable {attributes}>{body}</mtable>" if attributes else f"<mtable>{body}</mtable>"
