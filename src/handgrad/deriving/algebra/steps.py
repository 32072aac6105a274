"""Steps of a simplification: both sides, the rule, the reason as a person gives it, and the
difference of the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from handgrad.deriving.algebra.terms import (
    BaseTable,
    Component,
    Fact,
    Factor,
    Mask,
    Reason,
    Sum,
    told,
)
from handgrad.program.node import Node
from handgrad.program.sizes import Size

_LETTERS: Final = "ijklmn"


@dataclass(frozen=True)
class Simplification:
    """One simplification of one array."""

    array: Node
    rule: str  # fact, fold, definition or vanishes
    before: Sum
    after: Sum
    reason: Reason
    #: The largest difference of both sides, as a share of the largest value, at each set of sizes
    #: that was tried.
    differences: tuple[float, ...] = ()
    table: BaseTable | None = None

    @property
    def why(self) -> str:
        """The reason as text."""
        return told(self.reason)

    def formulas(self) -> tuple[str, str]:
        """Both sides as text."""
        assert self.table is not None
        return spelled(self.table, self.before), spelled(self.table, self.after)


def spelled(table: BaseTable, sum_: Sum) -> str:
    """A sum as text: Σ over letters for bound indices, names as the user has them."""
    if not sum_:
        return "0"
    text = ""
    for term, coefficient in sorted(sum_.items(), key=lambda item: (item[1] < 0, item[0])):
        sign = "−" if coefficient < 0 else "+"
        body = _product(table, term, abs(coefficient))
        text += f" {sign} {body}" if text else ("−" if coefficient < 0 else "") + body
    return text


def _product(table: BaseTable, term: Sequence[Factor], coefficient: Fraction) -> str:
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


def _factor(table: BaseTable, factor: Factor) -> str:
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


def reason(
    table: BaseTable,
    before: Sum,
    after: Sum,
    written_out: Sequence[Node],
    facts: Sequence[Fact],
    *,
    is_softmax: bool,
) -> Reason:
    """Words for a step in which arrays were written out: what that showed, not only that it was
    done.
    """
    parts: list[Reason] = [fact.why for fact in facts]
    if _extremes(table, before) - _extremes(table, after):
        what = "softmax" if is_softmax else "the result"
        shifted = "does not change when every score is shifted, so the maximum has no gradient"
        parts.append((f"{what} {shifted}",))
    elif not after:
        parts.append(("its terms cancel",))
    if not parts:
        named = dict.fromkeys((each,) for each in written_out)
        parts.append(("with ", *joined(named, " and "), " written out, equal parts meet"))
    return joined(parts, "; ")


def joined(parts: Iterable[Reason], between: str) -> Reason:
    """Reasons one after another, each once."""
    found: list[str | Node] = []
    for part in dict.fromkeys(parts):
        found += [between, *part] if found else part
    return tuple(found)


def _extremes(table: BaseTable, sum_: Sum) -> set[int]:
    """Masks that say where an array has its maximum, as truths or as numbers."""
    bases = {base for term in sum_ for f in term for base in table.inside(f.base)}
    found = set()
    for base in bases:
        condition = _condition(table.bases[base])
        if condition is not None and condition.op == "equal":
            operands = [a.args[0] if a.op == "reshape" else a for a in condition.args]
            if any(each.op == "max" for each in operands):
                found.add(base)
    return found


def _condition(base: object) -> Node | None:
    """The truths that a base counts: those of a mask, or of truths as numbers."""
    if isinstance(base, Mask):
        return base.condition
    return base.args[0] if isinstance(base, Node) and base.op == "like" else None


__all__ = ["Simplification", "joined", "reason", "spelled"]
