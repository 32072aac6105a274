"""Formulas with how tightly they hold together, and the ways to put them side by side."""

from __future__ import annotations

from fractions import Fraction as Rational
from typing import Any, Final, NamedTuple

from handgrad.documents.formulas.formula import (
    Accent,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Operator,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    row,
)
from handgrad.equations.glossary import subscript

#: The signs of comparisons and of logic, by the operations of a program.
RELATIONS: Final = {
    "equal": "=",
    "not_equal": "≠",
    "less": "<",
    "less_equal": "≤",
    "greater": ">",
    "greater_equal": "≥",
}
LOGIC: Final = {
    **dict.fromkeys(("bitwise_and", "logical_and"), "∧"),
    **dict.fromkeys(("bitwise_or", "logical_or"), "∨"),
}
#: The strengths with which formulas hold together, weakest first.
CONDITION, SUM, BIG, PRODUCT, UNARY, ATOM = range(6)


class Part(NamedTuple):
    """A formula and how tightly it holds together."""

    formula: Formula
    strength: int


def fenced(formula: Formula, strength: int) -> Formula:
    """In brackets; a condition in square ones, which are 1 where it holds and 0 elsewhere."""
    return Fenced(formula, "[" if strength == CONDITION and is_condition(formula) else "(")


def is_condition(formula: Formula) -> bool:
    signs = {"=", "≠", "<", "≤", ">", "≥", "∧", "∨"}
    return isinstance(formula, FormulaRow) and any(
        isinstance(part, Sign) and part.char in signs for part in formula.parts
    )


def juxtaposed(parts: list[Formula]) -> Formula:
    """Side by side, with a dot between numbers and some room around words."""
    joined: list[Formula] = []
    for part in parts:
        if joined:
            before = joined[-1]
            if _starts_with_number(part):
                joined.append(Sign("·"))
            elif _is_word(_last(before)) or _is_word(_first(part)):
                joined.append(Space())
        joined.append(part)
    return row(*joined)


def power(base: Part, exponent: Formula) -> Part:
    formula, strength = base
    match formula:
        case Script(inner, sub, None):
            return Part(Script(inner, sub, exponent), ATOM)
        case Symbol() | Number() | Text() | Accent() | Fenced():
            return Part(Script(formula, sup=exponent), ATOM)
    return Part(Script(fenced(formula, strength), sup=exponent), ATOM)


def subscripted(base: Part, index: Formula) -> Part:
    """A base with an index; below ∂x where it is a gradient."""
    match base.formula:
        case Fraction(FormulaRow((Symbol("partial"), *_)) as above, FormulaRow((partial, *below))):
            return Part(Fraction(above, row(partial, subscript(row(*below), index))), UNARY)
        case Symbol() | Script() | Text() | Accent() | Fenced():
            return Part(subscript(base.formula, index), ATOM)
    return Part(Script(Fenced(base.formula), index), ATOM)


def constant(value: Any) -> Part:
    """A number as it is written by hand: ½ for 0.5, 10⁻⁵ for 1e-5."""
    if value is None or isinstance(value, str) or value is ...:
        return Part(Text("" if value is ... else str(value)), ATOM)
    if isinstance(value, bool):
        return Part(Number(str(int(value))), ATOM)
    if value != value or value in (float("inf"), float("-inf")):
        infinite: Formula = Text("NaN") if value != value else Symbol("infinity")
        return Part(row(Sign("−"), infinite), SUM) if value < 0 else Part(infinite, ATOM)
    if value < 0:
        return Part(row(Sign("−"), constant(-value).formula), SUM)
    if float(value).is_integer() and value < 1e6:
        return Part(Number(str(int(value))), ATOM)
    exact = Rational(value)
    if exact.denominator <= 8:
        return Part(Fraction(Number(str(exact.numerator)), Number(str(exact.denominator))), UNARY)
    digits, _, exponent = repr(float(value)).partition("e")
    if not exponent:
        return Part(Number(digits), ATOM)
    sign = [Sign("−")] if exponent.startswith("-") else []
    ten = Script(Number("10"), sup=row(*sign, Number(str(abs(int(exponent))))))
    return Part(ten if digits == "1" else row(Number(digits), Sign("·"), ten), UNARY)


def strength_of(formula: Formula) -> int:
    match formula:
        case FormulaRow((Sign("−"), *_)):
            return SUM
        case FormulaRow():
            return PRODUCT
        case Fraction():
            return UNARY
    return ATOM


def argument(body: Formula) -> Formula:
    return body if isinstance(body, Symbol | Script | Accent | Fenced) else Fenced(body)


def is_one(formula: Formula) -> bool:
    return formula == Number("1")


def _first(formula: Formula) -> Formula:
    return (
        _first(formula.parts[0]) if isinstance(formula, FormulaRow) and formula.parts else formula
    )


def _last(formula: Formula) -> Formula:
    return (
        _last(formula.parts[-1]) if isinstance(formula, FormulaRow) and formula.parts else formula
    )


def _starts_with_number(formula: Formula) -> bool:
    first = _first(formula)
    return isinstance(first, Number) or (
        isinstance(first, Script) and isinstance(first.base, Number)
    )


def _is_word(formula: Formula) -> bool:
    inner = formula.base if isinstance(formula, Script) else formula
    return isinstance(inner, Text | Operator)
