"""A sum of exponentials that is divided by with 1 in the place of 0, as in a row masked throughout.

The sum over that divisor is 1, but 0 in rows in which every exponential is 0. Beside one of these
exponentials both are the same: a product with it is 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from handgrad.deriving.algebra.terms import BaseTable, Factor


class GuardedSum(NamedTuple):
    """The bases of a sum and of what it adds, and where the latter has the axes that are left."""

    total: int
    part: int
    kept: tuple[int, ...]


def without_guards(table: BaseTable, factors: Sequence[Factor]) -> list[Factor]:
    """A product without a guarded sum over its divisor, where one of its parts is a factor too."""
    found = list(factors)
    for at, divisor in enumerate(factors):
        guarded = table.guarded.get(divisor.base)
        if guarded is None or divisor.power >= 0:
            continue
        sums = (k for k, f in enumerate(found) if f.base == guarded.total and f.power >= 1)
        place = next((k for k in sums if found[k].indices == divisor.indices), None)
        if place is None:
            continue
        others = [f for k, f in enumerate(found) if k not in (at, place)]
        if any(_has_part(table, f, guarded, divisor.indices) for f in others):
            found[at] = divisor._replace(power=divisor.power + 1)
            found[place] = found[place]._replace(power=found[place].power - 1)
    return [f for f in found if f.power]


def _has_part(
    table: BaseTable, factor: Factor, guarded: GuardedSum, indices: tuple[int, ...]
) -> bool:
    """Return whether a factor is a part of the sum, in its own rows, or adds up such products."""
    if factor.power < 1:
        return False
    if factor.base == guarded.part:
        return tuple(factor.indices[k] for k in guarded.kept) == indices
    places = dict(enumerate(factor.indices))
    inner = table.factors_of(factor.base)
    return any(
        f.base == guarded.part
        and f.power >= 1
        and tuple(places.get(f.indices[k]) for k in guarded.kept) == indices
        for f in inner
    )
