"""Mathematics as data: a small, immutable tree of what stands where on the paper.

The tree knows no output language; `latex`, `typst` and `mathml` write it in theirs. Letters and
signs are Unicode characters or Greek names, never a command of one language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from handgrad.errors import ArgumentError

_SMALL = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega"
)
_CAPITAL = "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"

#: Letters known by name, beside a to z and A to Z. Every other word is a `Text` or an `Operator`.
LETTERS = {
    **dict(zip(_SMALL.split(), "αβγδεζηθικλμνξπρστυφχψω", strict=True)),
    **dict(zip(_CAPITAL.split(), "ΓΔΘΛΞΠΣΥΦΨΩ", strict=True)),
    "ell": "ℓ",
    "partial": "∂",
    "nabla": "∇",
    "infinity": "∞",
}

#: The signs that may stand between and around letters.
SIGNS = frozenset("=+−±×·⊙⊗∗∘/,;:!<>≤≥≠≈≡∈∉∝→←↦∧∨¬∣⋯⋮⋱⊤′∅")

#: Opening fence: its closing one. The empty string is no fence at that side.
FENCES = {"(": ")", "[": "]", "{": "}", "|": "|", "‖": "‖", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉", "": ""}


@dataclass(frozen=True, slots=True)
class Symbol:
    """One letter, Latin or from `LETTERS`; italic unless upright.

    Raises ArgumentError for any other word.
    """

    name: str
    bold: bool = False
    upright: bool = False

    def __post_init__(self) -> None:
        latin = len(self.name) == 1 and self.name.isascii() and self.name.isalpha()
        if not latin and self.name not in LETTERS:
            raise ArgumentError(
                f"formula: {self.name!r} is no symbol; allowed: one letter, or a name in LETTERS"
            )


@dataclass(frozen=True, slots=True)
class Number:
    """Digits with at most one decimal point. A sign or a power of ten stands beside it in a row."""

    digits: str


@dataclass(frozen=True, slots=True)
class Text:
    """Words within a formula, upright, such as "if" or a name that has no letter of its own.

    Raises ArgumentError for characters that not every language of mathematics can write.
    """

    text: str

    def __post_init__(self) -> None:
        if not self.text.isprintable() or set(self.text) & set("\\{}^~$#%&"):
            raise ArgumentError(
                f"formula: the text {self.text!r} has a character that cannot stand in a formula; "
                "allowed: words and punctuation without \\ { } ^ ~ $ # % &"
            )


@dataclass(frozen=True, slots=True)
class Operator:
    """A function known by a word: exp, tanh, mean. Spaced as a function is.

    Raises ArgumentError where the name has more than letters and digits.
    """

    name: str

    def __post_init__(self) -> None:
        _check_word(self.name)


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign of operation, relation or punctuation: one character of `SIGNS`.

    Raises ArgumentError for any other.
    """

    char: str

    def __post_init__(self) -> None:
        if self.char not in SIGNS:
            allowed = " ".join(sorted(SIGNS))
            raise ArgumentError(f"formula: {self.char!r} is no sign; allowed: {allowed}")


@dataclass(frozen=True, slots=True)
class Space:
    """Thin room, as between a number and its unit."""


@dataclass(frozen=True, slots=True)
class FormulaRow:
    """One after the other."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Fraction:
    numerator: Formula
    denominator: Formula


@dataclass(frozen=True, slots=True)
class Root:
    """A square root."""

    body: Formula


@dataclass(frozen=True, slots=True)
class Script:
    base: Formula
    sub: Formula | None = None
    sup: Formula | None = None


@dataclass(frozen=True, slots=True)
class Accent:
    """A mark above: as wide as the body where that is more than one letter."""

    kind: Literal["hat", "bar", "tilde", "dot"]
    body: Formula


@dataclass(frozen=True, slots=True)
class Big:
    """Σ ("sum") or Π ("prod") over a body, or a word such as "max" with its index below it."""

    kind: str
    body: Formula
    below: Formula | None = None
    above: Formula | None = None

    def __post_init__(self) -> None:
        _check_word(self.kind)


@dataclass(frozen=True, slots=True)
class Fenced:
    """A body between fences that grow with it; `left` and `right` are keys and values of FENCES.

    Without `right`, the fence that closes `left`.
    """

    body: Formula
    left: str = "("
    right: str | None = None

    @property
    def closing(self) -> str:
        return FENCES[self.left] if self.right is None else self.right


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of equal length between fences."""

    rows: tuple[tuple[Formula, ...], ...]
    left: str = "["
    align: Literal["center", "right"] = "center"


@dataclass(frozen=True, slots=True)
class Cases:
    """Value and condition, one pair a line, behind one brace."""

    rows: tuple[tuple[Formula, Formula], ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of which the second halves start below each other. Stands alone, not inside others."""

    rows: tuple[tuple[Formula, Formula], ...]


@dataclass(frozen=True, slots=True)
class Phantom:
    """The room a body takes, left empty; it lines numbers up."""

    body: Formula


Formula: TypeAlias = (
    Symbol
    | Number
    | Text
    | Operator
    | Sign
    | Space
    | FormulaRow
    | Fraction
    | Root
    | Script
    | Accent
    | Big
    | Fenced
    | Matrix
    | Cases
    | Lines
    | Phantom
)


def _check_word(name: str) -> None:
    if not (name.isascii() and name.isalnum()):
        raise ArgumentError(
            f"formula: {name!r} is no name of a function; allowed: letters and digits, as in exp"
        )


def row(*parts: Formula) -> Formula:
    """The parts one after the other; rows among them are opened, and one part alone stays bare."""
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, FormulaRow) else (part,))
    return flat[0] if len(flat) == 1 else FormulaRow(tuple(flat))


def separated(parts: tuple[Formula, ...], separator: str = ",") -> Formula:
    """The parts with a sign between each two."""
    joined: list[Formula] = []
    for part in parts:
        joined.extend((Sign(separator), part) if joined else (part,))
    return row(*joined)


def equals(left: Formula, right: Formula) -> Formula:
    return row(left, Sign("="), right)


def transpose(base: Formula) -> Formula:
    return Script(base, sup=Sign("⊤"))


def gradient_of(symbol: Formula, loss: Formula = Symbol("L")) -> Formula:
    """∂L/∂x."""
    partial = Symbol("partial")
    return Fraction(row(partial, loss), row(partial, symbol))


def is_tall(formula: Formula | None) -> bool:
    """Whether it stands higher than one line, so that the fences around it must grow."""
    match formula:
        case Fraction() | Root() | Big() | Matrix() | Cases() | Lines():
            return True
        case FormulaRow(parts):
            return any(is_tall(part) for part in parts)
        case Script(base=base, sup=sup):
            return is_tall(base) or is_tall(sup)
        case Accent(body=body) | Fenced(body=body) | Phantom(body=body):
            return is_tall(body)
    return False


def occurs(part: Formula, formula: Formula) -> bool:
    """Whether a formula has a part in it, which may be raised to something there."""
    return any(
        each == part or (isinstance(each, Script) and _unraised(each) == part)
        for each in parts_in(formula)
    )


def _unraised(formula: Script) -> Formula:
    return formula.base if formula.sub is None else Script(formula.base, formula.sub)


def parts_in(formula: Any) -> Iterator[Formula]:
    """A formula, or several, and everything in it, from the outside in."""
    if isinstance(formula, tuple):
        for each in formula:
            yield from parts_in(each)
    elif isinstance(formula, Formula):
        yield formula
        for field in fields(formula):
            yield from parts_in(getattr(formula, field.name))
