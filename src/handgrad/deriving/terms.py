"""Sums of products over named indices, in which matmul, sum, mean and broadcasting are one form.

A factor is an array with the index of each of its axes and a power; a term is a product of factors,
summed over its bound indices; a sum is terms with their coefficients. Equal sums are equal objects:
terms are in a canonical order, and products need no rule for commutativity.

Source of the form: Wang, Hutchison, Leang, Howe, Suciu, SPORES: sum-product optimization via
relational equality saturation for large scale linear algebra (2020).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

#: Bound indices are numbered from here, so that none is an index of an axis.
_BOUND: Final = 100
_FRESH: Final = itertools.count(1_000_000)


class Index(NamedTuple):
    """An axis of a product: its dimension, and which of the axes of that dimension it is."""

    dimension: str
    number: int = 0


#: An exponent: an int where it is one, because equal terms are looked up often.
Power = int | Fraction


class Factor(NamedTuple):
    """An array by its name, with the index of each axis longer than one, to a power."""

    name: str
    indices: tuple[Index, ...] = ()
    power: Power = 1

    @property
    def is_size(self) -> bool:
        """Return whether it is the length of a dimension, written #D."""
        return self.name.startswith("#")

    @property
    def is_mask(self) -> bool:
        """Return whether it is an array of zeros and ones, written [condition]."""
        return self.name.startswith("[")


class Term(NamedTuple):
    """A product of factors, summed over the bound indices."""

    factors: tuple[Factor, ...] = ()
    bound: tuple[Index, ...] = ()


Sum = Mapping[Term, Fraction]
Renaming = Mapping[Index, Index]

ONE: Final[Sum] = {Term(): Fraction(1)}


def of(name: str, indices: Iterable[Index] = (), power: Power = 1) -> Sum:
    """One factor as a sum."""
    return {term((Factor(name, tuple(indices), power),), ()): Fraction(1)}


def magnitude(power: Power) -> Power:
    """A power without its sign."""
    return -power if power < 0 else power


def constant(value: Fraction | int) -> Sum:
    return {Term(): Fraction(value)} if value else {}


def opposite(mask: str) -> str:
    """The mask that is one where this one is zero."""
    return f"[{mask[2:]}" if mask.startswith("[~") else f"[~{mask[1:]}"


def term(factors: Iterable[Factor], bound: Iterable[Index]) -> Term:
    """The canonical term: equal factors together, bound indices numbered in one way."""
    merged = _merged(factors)
    used = {index for factor in merged for index in factor.indices}
    left = sorted(set(bound) & used)
    sizes = [Factor(f"#{index.dimension}") for index in set(bound) - used]
    if sizes:
        merged = _merged((*merged, *sizes))
    if not left:
        return Term(tuple(sorted(merged)), ())
    groups = [list(group) for _, group in itertools.groupby(left, key=lambda each: each.dimension)]
    return min(
        _numbered(merged, groups, orders)
        for orders in itertools.product(*map(itertools.permutations, groups))
    )


def _merged(factors: Iterable[Factor]) -> list[Factor]:
    powers: dict[tuple[str, tuple[Index, ...]], Power] = {}
    for name, indices, power in factors:
        powers[name, indices] = powers.get((name, indices), 0) + power
    found = [
        Factor(*key, power.numerator if power.denominator == 1 else power)
        for key, power in powers.items()
        if power
    ]
    return [each._replace(power=1) if each.is_mask else each for each in found]


def _numbered(
    factors: list[Factor], groups: list[list[Index]], orders: tuple[tuple[Index, ...], ...]
) -> Term:
    kept = {index for factor in factors for index in factor.indices}.difference(*groups)
    names: dict[Index, Index] = {}
    for order in orders:
        numbers = (n for n in itertools.count(_BOUND) if (order[0].dimension, n) not in kept)
        names.update({i: Index(i.dimension, n) for i, n in zip(order, numbers, strict=False)})
    changed = (
        factor._replace(indices=tuple(names.get(index, index) for index in factor.indices))
        for factor in factors
    )
    return Term(tuple(sorted(changed)), tuple(sorted(names.values())))


def add(*sums: Sum) -> Sum:
    total: dict[Term, Fraction] = {}
    for each in sums:
        for key, coefficient in each.items():
            total[key] = total.get(key, Fraction(0)) + coefficient
    return {key: coefficient for key, coefficient in total.items() if coefficient}


def scaled(sum_: Sum, by: Fraction | int) -> Sum:
    return {key: coefficient * by for key, coefficient in sum_.items()} if by else {}


def fresh(one: Term) -> Term:
    """The same term with bound indices that occur nowhere else."""
    names = {index: Index(index.dimension, next(_FRESH)) for index in one.bound}
    return Term(
        tuple(
            factor._replace(indices=tuple(names.get(index, index) for index in factor.indices))
            for factor in one.factors
        ),
        tuple(names.values()),
    )


def fresh_index(dimension: str) -> Index:
    return Index(dimension, next(_FRESH))


def multiply(first: Sum, second: Sum, bound: Iterable[Index] = ()) -> Sum:
    """The product, summed over `bound`; indices of the same name in both are the same."""
    found: dict[Term, Fraction] = {}
    for one, a in first.items():
        for two, b in second.items():
            left, right = fresh(one), fresh(two)
            factors = (*left.factors, *right.factors)
            if _vanishes(factors):
                continue
            key = term(factors, (*left.bound, *right.bound, *bound))
            found[key] = found.get(key, Fraction(0)) + a * b
    return {key: coefficient for key, coefficient in found.items() if coefficient}


def _vanishes(factors: Iterable[Factor]) -> bool:
    """Return whether a mask and its opposite are among them."""
    masks = {(each.name, each.indices) for each in factors if each.is_mask}
    return any((opposite(name), indices) in masks for name, indices in masks)


def summed(sum_: Sum, bound: Iterable[Index]) -> Sum:
    return multiply(sum_, ONE, tuple(bound))


def renamed(sum_: Sum, names: Renaming) -> Sum:
    """The sum with other free indices."""
    found: dict[Term, Fraction] = {}
    for each, coefficient in sum_.items():
        factors, bound = fresh(each)
        changed = (
            factor._replace(indices=tuple(names.get(index, index) for index in factor.indices))
            for factor in factors
        )
        key = term(changed, bound)
        found[key] = found.get(key, Fraction(0)) + coefficient
    return found


def powered(sum_: Sum, power: Power) -> Sum | None:
    """The power of a single product; None where that is no product.

    A root is taken of what has no other power alone, because √(a²) is not a.
    """
    if power == 1:
        return sum_
    if power == 0:
        return ONE
    if len(sum_) != 1:
        return None
    ((factors, bound), coefficient) = next(iter(sum_.items()))
    if bound:
        return multiply(sum_, sum_) if power == 2 else None
    if power.denominator != 1 and (
        coefficient != 1 or any(f.power != 1 and f.power.denominator == 1 for f in factors)
    ):
        return None
    changed = (f._replace(power=f.power * power) for f in factors)
    return {term(changed, ()): coefficient ** int(power) if power.denominator == 1 else Fraction(1)}


def names_in(sum_: Sum) -> set[str]:
    """The arrays that occur, without sizes."""
    return {f.name for each in sum_ for f in each.factors if not f.is_size}


def common_factors(terms: Sequence[Term]) -> dict[tuple[str, tuple[Index, ...]], Power]:
    """Factors outside the sums that all terms have, with the power that they share."""
    outside = [
        {(f.name, f.indices): f.power for f in t.factors if not set(f.indices) & set(t.bound)}
        for t in terms
    ]
    found: dict[tuple[str, tuple[Index, ...]], Power] = {}
    summed_over = {f"#{index.dimension}" for each in terms for index in each.bound}
    for key in outside[0]:
        powers: list[Power] = [each.get(key, 0) for each in outside]
        if key[0] in summed_over:  # the sum is a mean with it
            continue
        if all(power > 0 for power in powers):
            found[key] = min(powers)
        elif all(power < 0 for power in powers):
            found[key] = max(powers)
    return found


def without(one: Term, common: dict[tuple[str, tuple[Index, ...]], Power]) -> Term:
    """The term divided by factors outside its sums."""
    bound = set(one.bound)
    factors = [
        f._replace(power=f.power - common.get((f.name, f.indices), 0))
        if not set(f.indices) & bound
        else f
        for f in one.factors
    ]
    return Term(tuple(f for f in factors if f.power), one.bound)
