"""Constants by what their names say: SQRT_2_OVER_PI."""

from __future__ import annotations

import math
from typing import Final

from handgrad.documents.formulas.formula import Formula, Fraction, Number, Root, Symbol
from handgrad.equations.parts import UNARY, Part, constant, juxtaposed

#: Words in the names of constants.
_CONSTANTS: Final[dict[str, tuple[Formula, float]]] = {
    "PI": (Symbol("pi"), math.pi),
    "HALF": (Fraction(Number("1"), Number("2")), 0.5),
}


def global_constant(name: str, value: float) -> Part:
    """SQRT_2_OVER_PI as √(2/π); a name that says nothing about its value as the number."""
    inverse, rest = name.startswith("INV_"), name.removeprefix("INV_")
    root, rest = rest.startswith("SQRT_"), rest.removeprefix("SQRT_")
    above, _, below = rest.partition("_OVER_")
    top, bottom = _numbers_in(above), _numbers_in(below)
    if top is None or bottom is None:
        return constant(value)
    amount = top[1] / bottom[1]
    body = Fraction(top[0], bottom[0]) if below else top[0]
    body, amount = (Root(body), math.sqrt(amount)) if root else (body, amount)
    body, amount = (Fraction(Number("1"), body), 1.0 / amount) if inverse else (body, amount)
    return Part(body, UNARY) if math.isclose(amount, value) else constant(value)


def _numbers_in(words: str) -> tuple[Formula, float] | None:
    """The product that words such as 2_PI are, and its value; None for other words."""
    letters: list[Formula] = []
    amount = 1.0
    for word in filter(None, words.split("_")):
        if word.isdigit():
            found: tuple[Formula, float] | None = (Number(word), float(word))
        else:
            found = _CONSTANTS.get(word)
        if found is None:
            return None
        letters.append(found[0])
        amount *= found[1]
    return juxtaposed(letters) if letters else Number("1"), amount
