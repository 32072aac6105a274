"""Sums and products of parts: which sign stands between, and what goes below a fraction's line."""

from __future__ import annotations

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    is_tall,
    separated,
)
from handgrad.equations.parts import (
    ATOM,
    BIG,
    PRODUCT,
    SUM,
    UNARY,
    Part,
    fenced,
    juxtaposed,
)

#: A formula, how tightly it holds together, and whether ⊙ stands beside it.
Item = tuple[Formula, int, bool]


def divided(above: list[Item], below: list[Item]) -> Part:
    """A fraction; what is high or long stands behind one over the denominator."""
    if not below:
        return multiplied(above)
    under = multiplied(below).formula
    if not above:
        return Part(Fraction(Number("1"), under), UNARY)
    over, strength = multiplied(above)
    if is_tall(over) or is_long(over):
        body = over if strength > SUM else Fenced(over)
        around = BIG if strength == BIG else PRODUCT
        return Part(juxtaposed([Fraction(Number("1"), under), body]), around)
    return Part(Fraction(over, under), UNARY)


def multiplied(parts: list[Item]) -> Part:
    """⊙ between arrays, nothing between what scales them."""
    if not parts:
        return Part(Number("1"), ATOM)
    if len(parts) == 1:
        return Part(parts[0][0], parts[0][1])
    groups: list[list[Formula]] = []
    full = False
    for position, (formula, strength, is_full) in enumerate(parts):
        last = position == len(parts) - 1
        written = formula if strength >= (BIG if last else PRODUCT) else fenced(formula, strength)
        if is_full and full:
            groups.append([written])
        elif groups:
            groups[-1].append(written)
        else:
            groups.append([written])
        full = full or is_full
    strongest = BIG if parts[-1][1] == BIG else PRODUCT
    return Part(separated(tuple(map(juxtaposed, groups)), "⊙"), strongest)


def is_long(formula: Formula) -> bool:
    return isinstance(formula, FormulaRow) and len(formula.parts) > 7
