"""Sums and products of parts: which sign stands between, and what goes below a fraction's line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from handgrad.derivation.equations.parts import (
    ATOM,
    BIG,
    PRODUCT,
    SUM,
    UNARY,
    Part,
    fenced,
    juxtaposed,
)
from handgrad.derivation.formulas.formula import (
    Fenced,
    Formula,
    Fraction,
    Number,
    Row,
    is_tall,
    separated,
)
from handgrad.trees import nodes
from handgrad.trees.nodes import Node


def divided(above: list[tuple[Formula, int, bool]], below: list[tuple[Formula, int, bool]]) -> Part:
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


def without_sign(node: Node) -> tuple[bool, Node]:
    """Whether a factor is negative, and what is left of it without the sign."""
    match node:
        case nodes.Negative(value):
            return True, value
        case nodes.Constant(int() | float() as value) if value < 0:
            return True, nodes.Constant(-value)
    return False, node


def multiplied(parts: list[tuple[Formula, int, bool]]) -> Part:
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


def repeated(factors: Iterator[tuple[bool, Node]]) -> Iterator[tuple[bool, Node, int]]:
    """The factors with how often each follows itself: x x x is x³."""
    for (inverse, value), group in groupby(factors):
        yield inverse, value, len(list(group))


def flat_terms(terms: tuple[nodes.Term, ...]) -> Iterator[tuple[int, Node]]:
    """The terms with the sign of a negative one taken out."""
    for term in terms:
        if isinstance(term.value, nodes.Negative):
            yield -term.sign, term.value.value
        else:
            yield term.sign, term.value


def is_long(formula: Formula) -> bool:
    return isinstance(formula, Row) and len(formula.parts) > 7
