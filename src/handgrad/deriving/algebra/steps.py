"""Steps of a simplification: both sides, the rule, the reason as a person gives it, and the difference of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from handgrad.deriving.algebra.terms import BOUND, Component, Factor, Mask, Sum, Table, Term
from handgrad.program.node import Node
from handgrad.program.sizes import Size

_LETTERS: Final = "ijklmn"


@dataclass(frozen=True)
class Step:
    """One simplification of one array."""

    array: Node
    rule: str  # fact, fold, definition or vanishes
    before: Sum
    after: Sum
    why: str
    #: The largest difference of both sides, as a share of the largest value, at each set of sizes that was tried.
    differences: tuple[float, ...] = ()
    table: Table | None = None

    def formulas(self) -> tuple[str, str]:
        """Both sides as text."""
        assert self.table is not None
        return spelled(self.table, self.before), spelled(self.table, self.after)


def spelled(table: Table, sum_: Sum) -> str:
    """A sum as text: Σ over letters for bound indices, names as the user has them."""
    if not sum_:
        return "0"
    text = ""
    for term, coefficient in sorted(sum_.items(), key=lambda item: (item[1] < 0, item[0])):
        sign = "−" if coefficient < 0 else "+"
        body = _product(table, term, abs(coefficient))
        text += f" {sign} {body}" if text else ("−" if coefficient < 0 else "") + body
    return text


def _product(table: Table, term: Sequence[Factor], coefficient: Fraction) -> str:
    above = [_factor(table, f) for f in term if f.power > 0]
    below = [_factor(table, f._replace(power=-f.power)) for f in term if f.power < 0]
    if coefficient.numerator != 1 or not above:
        above.insert(0, str(coefficient.numerator))
    if coefficient.denominator != 1:
        below.insert(0, str(coefficient.denominator))
    text = " ".join(above)
    for each in below:
        text += f" / {each}"
    return text


def _factor(table: Table, factor: Factor) -> str:
    base = table.bases[factor.base]
    if isinstance(base, Size):
        text = str(base)
    elif isinstance(base, Mask):
        text = f"[{'not ' if base.inverted else ''}{base.condition.name or base.condition.op}]"
    elif isinstance(base, Component):
        text = f"Σ({_product(table, base.term, Fraction(1))})"
    else:
        text = base.name or base.op
    if factor.power == 1:
        return text
    return f"{text}^{factor.power}"


def reason_of_zero(node: Node) -> str:
    """Words for an array whose gradient vanishes."""
    if node.op == "max":
        return (
            "the result does not change when everything is shifted by the same amount, so the maximum has no gradient"
        )
    return f"the result does not depend on {node.name or 'it'}"


__all__ = ["BOUND", "Mapping", "Step", "Term", "reason_of_zero", "spelled"]
