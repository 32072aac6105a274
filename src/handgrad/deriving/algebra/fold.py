"""Products written by the names that arrays have: centred · inv_std is x_hat, σ(1 − σ) has σ.

A name stands for a product of factors. Where these are among the factors of a term, with the same
indices and in the same ratio of powers, the name takes their place. What a forward has computed
costs nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from handgrad.deriving.algebra.terms import (
    BOUND,
    BaseTable,
    Component,
    Factor,
    Mask,
    Power,
    Sum,
    Term,
    add,
    axes_of,
    magnitude,
    scaled,
    whole,
)
from handgrad.program.node import Node
from handgrad.program.sizes import Size

#: Names are looked for in products of at most this many factors.
_MOST_FACTORS: Final = 14
#: Ways to meet one name in one product.
_MOST_WAYS: Final = 16


class Name(NamedTuple):
    """An array that stands for a product."""

    base: int
    factors: Term
    sizes: Term
    coefficient: Fraction
    axes: tuple[int, ...]
    rank: int
    #: Indices of the factors that it is summed over.
    over: frozenset[int] = frozenset()


@dataclass
class ProductNames:
    """The names of one derivation, found by the bases of their products."""

    table: BaseTable
    #: The number of elements over indices of these sizes.
    volume: Callable[[Iterable[int], dict[int, Size]], float]
    #: Names of single factors, which take their place wherever these are: roots and sums that the
    #: forward has.
    _aliases: dict[int, Name] = field(default_factory=dict)
    #: Bases of arrays that are not to be read.
    banned: set[int] = field(default_factory=set)
    _of: dict[int, list[Name]] = field(default_factory=dict)
    _folds: dict[object, list[tuple[frozenset[int], frozenset[int], Sum]]] = field(
        default_factory=dict
    )
    _forward: list[Name] = field(default_factory=list)
    #: So many names, the first ones, are of the forward.
    free: int = 0
    _count: int = 0

    def know(self, nodes: Iterable[tuple[Node, Sum]]) -> None:
        """Lets the arrays of a forward stand for their products: those of single factors first, in
        terms of which the others are met.
        """
        found = [(node, self._name(node, form)) for node, form in nodes]
        made = [(node, name) for node, name in found if name is not None]
        for _, name in made:
            if len(name.factors) == 1 and self._is_alias(name):
                self._aliases[name.factors[0].base] = name
        for node, name in made:
            self._enter(name)
            self._enter_sum(node, name)
        self.free = self._count
        self._forward = [name for _, name in made]

    def of_forward(self) -> list[Name]:
        return self._forward

    def keep(self, node: Node, form: Sum) -> None:
        """Lets a node stand for its product, if that is one and more than the node itself."""
        if (name := self._name(node, form)) is not None:
            self._enter(name)

    def _name(self, node: Node, form: Sum) -> Name | None:
        if len(form) != 1:
            return None
        ((term, coefficient),) = form.items()
        base = self.table.number(node)
        factors = tuple(f for f in term if not isinstance(self.table.bases[f.base], Size))
        sizes = tuple(f for f in term if isinstance(self.table.bases[f.base], Size))
        axes = axes_of(node)
        if set(axes) != {i for f in factors for i in f.indices}:
            return None
        if not factors or any(
            f.base == base or isinstance(self.table.bases[f.base], Mask) for f in factors
        ):
            return None
        self._count += 1
        return Name(base, factors, sizes, coefficient, axes, self._count)

    def _enter(self, name: Name) -> None:
        if any(alias.base == name.base for alias in self._aliases.values()):
            return
        factors, by = self._aliased(name.factors)
        name = name._replace(factors=tuple(factors), coefficient=name.coefficient * by)
        if not any(isinstance(self.table.bases[f.base], Size) for f in factors):
            self._of.setdefault(max(f.base for f in factors), []).append(name)

    def _enter_sum(self, node: Node, name: Name) -> None:
        """A sum stands for its factors in a longer sum too, where nothing else has the indices
        that it is over.
        """
        flat: list[Factor] = []
        over: dict[int, Size] = {}
        for each in name.factors:
            if isinstance(self.table.bases[each.base], Component) and each.power == 1:
                inner, sizes = self.table.opened(each)
                flat += inner
                over |= sizes
            else:
                flat.append(each)
        if not over:
            return
        sizes = dict(enumerate(node.shape)) | over
        flat, by = self._meet(flat, sizes, Fraction(1), name.rank - 1)
        over = _left(over, flat)
        made = name._replace(
            factors=tuple(flat), coefficient=name.coefficient * by, over=frozenset(over)
        )
        if (
            over
            and len(flat) > 1
            and not any(isinstance(self.table.bases[f.base], Size) for f in flat)
        ):
            self._of.setdefault(max(f.base for f in flat), []).append(made)

    def folded(self, sum_: Sum, shape: tuple[Size, ...], before: int | None = None) -> Sum:
        """The sum with names in place of products; only the first `before` names, where it is
        given.
        """
        return add(*(scaled(self._remembered(t, shape, before), c) for t, c in sum_.items()))

    def _remembered(self, term: Term, shape: tuple[Size, ...], before: int | None) -> Sum:
        """A term folded once for all bans that touch nothing of it."""
        known = self._folds.setdefault((term, shape, before, len(self._aliases)), [])
        for banned, bases, found in known:
            if banned <= self.banned and bases.isdisjoint(self.banned):
                return found
        found = self._term(term, Fraction(1), shape, before)
        own = frozenset(b for t in found for f in t for b in self.table.inside(f.base))
        known.append((frozenset(self.banned), own, found))
        return found

    def _is_alias(self, name: Name) -> bool:
        """A root, or a sum: of two roots the one below the line, which a normalisation multiplies
        with.
        """
        (factor,) = name.factors
        known = self._aliases.get(factor.base)
        if isinstance(self.table.bases[factor.base], Component):
            return factor.power == 1 and known is None
        if name.sizes or name.coefficient != 1 or (known and known.factors[0].power < 0):
            return False
        return factor.power in (Fraction(1, 2), Fraction(-1, 2))

    def _aliased(self, factors: Iterable[Factor]) -> tuple[list[Factor], Fraction]:
        """Factors by their aliases, and the number that these leave."""
        found: list[Factor] = []
        coefficient = Fraction(1)
        for each in factors:
            alias = self._aliases.get(each.base)
            if (
                alias is None
                or alias.base in self.banned
                or (times := whole(each.power / Fraction(alias.factors[0].power))) != int(times)
            ):
                found.append(each)
                continue
            places = dict(zip(alias.factors[0].indices, each.indices, strict=True))
            made = Factor(alias.base, tuple(places[a] for a in alias.axes), times)
            coefficient *= (1 / alias.coefficient) ** int(times)
            for new in (made, *(f._replace(power=whole(-times * f.power)) for f in alias.sizes)):
                _include(found, new)
        return found, coefficient

    def rank(self) -> int:
        return self._count

    def _term(
        self, term: Term, coefficient: Fraction, shape: tuple[Size, ...], before: int | None
    ) -> Sum:
        sizes, bound = dict(enumerate(shape)), dict[int, Size]()
        factors, coefficient = self._meet(list(term), sizes, coefficient, before)
        # Inside a sum, what stands outside helps to make a name: r Σ(d · c) is Σ(d · c r).
        flat: list[Factor] = []
        for each in factors:
            if isinstance(self.table.bases[each.base], Component) and each.power == 1:
                inner, more = self.table.opened(each)
                inner, coefficient = self._meet(inner, sizes | more, coefficient, before)
                flat += inner
                bound |= _left(more, inner)
            else:
                flat.append(each)
        if bound:
            flat, coefficient = self._meet(flat, sizes | bound, coefficient, before)
            bound = _left(bound, flat)
        facts, self.table.facts = self.table.facts, {}
        try:
            return self.table.product(flat, bound, coefficient)
        finally:
            self.table.facts = facts

    def _meet(
        self,
        factors: list[Factor],
        sizes: dict[int, Size],
        coefficient: Fraction,
        before: int | None,
    ) -> tuple[list[Factor], Fraction]:
        """Factors with names in their place, as long as that makes them cheaper."""
        factors, by = self._aliased(factors)
        coefficient *= by
        if len(factors) > _MOST_FACTORS:
            return factors, coefficient
        # What the forward has is free: its names go first.
        for last in dict.fromkeys((self.free, before)):
            factors, coefficient = self._written_by(factors, sizes, coefficient, last)
        return factors, coefficient

    def _written_by(
        self,
        factors: list[Factor],
        sizes: dict[int, Size],
        coefficient: Fraction,
        before: int | None,
    ) -> tuple[list[Factor], Fraction]:
        now = self._weight(factors, sizes)
        while True:
            best: tuple[float, int, list[Factor], Fraction] | None = None
            present = {f.base for f in factors}
            for base in present:
                for name in self._of.get(base, ()):
                    if before is not None and name.rank > before:
                        continue
                    if name.base in self.banned or any(f.base not in present for f in name.factors):
                        continue
                    for new, by in self._ways(name, factors):
                        price = self._weight(new, sizes)
                        if price < now - 1e-9 and (best is None or (price, name.rank) < best[:2]):
                            best = (price, name.rank, new, by)
            if best is None:
                return factors, coefficient
            _, _, factors, by = best
            now = self._weight(factors, sizes)
            coefficient *= by

    def _ways(self, name: Name, factors: list[Factor]) -> Iterator[tuple[list[Factor], Fraction]]:
        places = [
            [i for i, f in enumerate(factors) if f.base == part.base] for part in name.factors
        ]
        for chosen in itertools.islice(itertools.product(*places), _MOST_WAYS):
            if len(set(chosen)) < len(chosen):
                continue
            pairs = list(zip(name.factors, chosen, strict=True))
            ratios = [Fraction(factors[at].power) / part.power for part, at in pairs]
            if len({r > 0 for r in ratios}) > 1:
                continue
            least = min(ratios, key=abs)
            count = int(least) if abs(least) >= 1 else 0
            for times in {count, 1 if least > 0 else -1} - {0}:
                if abs(times) <= abs(least) or len(pairs) == 1:
                    new = self._written(name, factors, pairs, times)
                    if new is not None:
                        yield new, (1 / name.coefficient) ** times

    def _written(
        self, name: Name, factors: list[Factor], pairs: list[tuple[Factor, int]], times: int
    ) -> list[Factor] | None:
        names: dict[int, int] = {}
        rest = list(factors)
        for part, at in pairs:
            for own, here in zip(part.indices, factors[at].indices, strict=True):
                if names.setdefault(own, here) != here:
                    return None
            power = whole(rest[at].power - times * part.power)
            rest[at] = rest[at]._replace(power=power)
        if len(set(names.values())) < len(names):
            return None
        if name.over:
            over = {names[index] for index in name.over}
            others = {i for f in rest if f.power for i in f.indices}
            if times != 1 or min(over) < BOUND or over & others:
                return None
        made = Factor(name.base, tuple(names[axis] for axis in name.axes), times)
        undone = [f._replace(power=whole(-times * f.power)) for f in name.sizes]
        found = [f for f in rest if f.power]
        for each in (*undone, made):
            _include(found, each)
        return found

    def _weight(self, factors: Iterable[Factor], sizes: dict[int, Size]) -> float:
        """About the operations of a product: one for each element of each factor, more for powers
        and sums.
        """
        total = 0.0
        for factor in factors:
            own = self.table.bases[factor.base]
            if isinstance(own, Size):
                total += 0.1
                continue
            volume = self.volume(factor.indices, sizes)
            total += volume * power_cost(factor.power)
            if isinstance(own, Component):
                inner = dict(own.sizes)
                places = dict(enumerate(factor.indices))
                names = {k: places.get(k, k) for f in own.term for k in f.indices}
                every = {names[k] for f in own.term for k in f.indices}
                total += self.volume(every, sizes | inner) * len(own.term)
        return total


def _left(bound: dict[int, Size], factors: Iterable[Factor]) -> dict[int, Size]:
    """The bound indices that factors still have: a name that is a sum has taken the others."""
    used = {index for factor in factors for index in factor.indices}
    return {index: size for index, size in bound.items() if index in used}


def _include(factors: list[Factor], factor: Factor) -> None:
    """Multiplies a list of factors with one more."""
    for at, each in enumerate(factors):
        if each[:2] == factor[:2]:
            if power := whole(each.power + factor.power):
                factors[at] = each._replace(power=power)
            else:
                factors.pop(at)
            return
    factors.append(factor)


def power_cost(power: Power) -> float:
    """One for a factor, more for divisions, repeated factors and roots."""
    size = magnitude(power)
    repeated = float(size) if size >= 1 else 1.0
    return repeated + (0.5 if power < 0 else 0.0) + (1.5 if size != int(size) else 0.0)
