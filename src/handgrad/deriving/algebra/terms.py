"""Sums of products over named indices, in which matmul, sum, mean and broadcasting are one form.

A base is an array (a node), a size, a mask, or a component: a sum over bound indices of a product
that does not fall apart. A factor is a base with the index of each of its axes and a power, a term
a product of factors, a sum terms with their coefficients. Equal sums are equal objects: a product
needs no rule for commutativity, a bound index no name.

Source of the form: Wang, Hutchison, Leang, Howe, Suciu, SPORES: sum-product optimization via
relational equality saturation for large scale linear algebra (2020).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

from handgrad.program.node import Node
from handgrad.program.sizes import ONE, Size

#: An exponent: an int where it is one, because equal terms are looked up often.
Power = int | Fraction

#: Indices of axes are below, bound indices from here on, so that none is both.
BOUND: Final = 1000
#: Orders of indices that look alike are tried up to this number; beyond it equal components may
#: stay apart.
_MOST_ORDERS: Final = 24


class Factor(NamedTuple):
    """A base by its number, with the index of each of its axes longer than one, to a power."""

    base: int
    indices: tuple[int, ...] = ()
    power: Power = 1


Term = tuple[Factor, ...]
Sum = dict[Term, Fraction]


@dataclass(frozen=True)
class Mask:
    """Zeros and ones from a condition: one where it holds, or where it does not."""

    condition: Node
    inverted: bool = False


@dataclass(frozen=True)
class Component:
    """A sum over bound indices of factors that these hold together; its free indices are 0, 1, …"""

    term: Term
    sizes: tuple[tuple[int, Size], ...]


Base = Node | Size | Mask | Component


Reason: TypeAlias = tuple[str | Node, ...]
"""The reason of a fact or of a step: words, with the arrays that they are about."""


def told(reason: Reason) -> str:
    """A reason as text, with the names that the code has."""
    return "".join(
        part if isinstance(part, str) else part.name or f"{part.op}(…)" for part in reason
    )


class Fact(NamedTuple):
    """The sum of an array over some of its axes, which is a constant."""

    base: int
    over: frozenset[int]
    value: Fraction
    why: Reason


class GuardedSum(NamedTuple):
    """A sum of exponentials that is divided by with 1 in the place of 0.

    The bases of the sum and of what it adds, and where the latter has the axes that are left.
    """

    total: int
    part: int
    kept: tuple[int, ...]


def axes_of(node: Node) -> tuple[int, ...]:
    """The axes that have an index: those not of length one."""
    return tuple(at for at, size in enumerate(node.shape) if size != ONE)


def whole(power: Power) -> Power:
    """The same exponent, an int where it is one."""
    return int(power) if power == int(power) else power


def magnitude(power: Power) -> Power:
    """A power without its sign."""
    return -power if power < 0 else power


def add(*sums: Mapping[Term, Fraction]) -> Sum:
    total: Sum = {}
    for each in sums:
        for key, coefficient in each.items():
            total[key] = total.get(key, Fraction(0)) + coefficient
    return {key: coefficient for key, coefficient in total.items() if coefficient}


def scaled(sum_: Sum, by: Fraction | int) -> Sum:
    return {key: coefficient * by for key, coefficient in sum_.items()} if by else {}


@dataclass
class BaseTable:
    """The bases of one derivation, numbered as they come, with the facts that hold for them."""

    bases: list[Base] = field(default_factory=list)
    facts: dict[int, list[Fact]] = field(default_factory=dict)
    #: Sums that are divided by with 1 in the place of 0, by the divisor.
    guarded: dict[int, GuardedSum] = field(default_factory=dict)
    #: Facts that products made use of, in order; whoever reports steps empties it.
    used: list[Fact] = field(default_factory=list)
    _numbers: dict[object, int] = field(default_factory=dict)
    _inside: dict[int, frozenset[int]] = field(default_factory=dict)
    _fresh: Iterator[int] = field(default_factory=lambda: itertools.count(2 * BOUND))

    def number(self, base: Base) -> int:
        key: object = id(base) if isinstance(base, Node) else base
        if isinstance(base, Mask):
            key = (id(base.condition), base.inverted)
        elif isinstance(base, Component):
            key = base.term
        if key not in self._numbers:
            self._numbers[key] = len(self.bases)
            self.bases.append(base)
        return self._numbers[key]

    def atom(self, node: Node) -> Sum:
        """An array as a sum over the indices of its own axes."""
        return {(Factor(self.number(node), axes_of(node)),): Fraction(1)}

    def size(self, size: Size) -> Sum:
        """A length: a number, a product of letters, or a base of its own."""
        if len(size.terms) != 1:
            return {(Factor(self.number(size)),): Fraction(1)} if size.terms else {}
        ((atoms, coefficient),) = size.terms
        factors = [Factor(self.number(Size((((atom,), 1),)))) for atom in atoms]
        return self.product(factors, {}, Fraction(coefficient))

    def fresh(self) -> int:
        return next(self._fresh)

    def inside(self, base: int) -> frozenset[int]:
        """A base and all that it is made of."""
        if base not in self._inside:
            found = {base}
            own = self.bases[base]
            if isinstance(own, Component):
                for factor in own.term:
                    found |= self.inside(factor.base)
            self._inside[base] = frozenset(found)
        return self._inside[base]

    def opened(self, factor: Factor) -> tuple[list[Factor], dict[int, Size]]:
        """The factors of a component, its bound indices under new numbers, and their sizes."""
        component = self.bases[factor.base]
        assert isinstance(component, Component)
        names = dict(enumerate(factor.indices))
        names |= {index: self.fresh() for index, _ in component.sizes}
        inner = [f._replace(indices=tuple(names[i] for i in f.indices)) for f in component.term]
        return inner, {names[index]: size for index, size in component.sizes}

    def product(
        self, factors: Iterable[Factor], bound: Mapping[int, Size], by: Fraction | int = 1
    ) -> Sum:
        """The product summed over `bound`: one canonical term, or nothing where it is zero."""
        coefficient = Fraction(by)
        waiting, left = list(factors), dict(bound)
        flat: list[Factor] = []
        while waiting:
            each = waiting.pop()
            base = self.bases[each.base]
            opens = isinstance(base, Component) and each.power == 1
            if opens and not left.keys().isdisjoint(each.indices):
                inner, more = self.opened(each)
                waiting += inner
                left |= more
            else:
                flat.append(each)
        merged = self._merged(flat)
        if merged is None or not coefficient or any(not size.terms for size in left.values()):
            return {}
        if left:
            merged, coefficient = self._without_facts(merged, left, coefficient)
            used = {index for each in merged for index in each.indices}
            for index in [i for i in left if i not in used]:
                ((sizes, number),) = self.size(left.pop(index)).items()
                merged += sizes
                coefficient *= number
            merged = self._merged(self._split(merged, left)) or []
        if self.guarded:
            merged = self._without_guards(merged)
        return {tuple(sorted(merged)): coefficient} if coefficient else {}

    def multiply(self, first: Sum, second: Sum, bound: Mapping[int, Size] | None = None) -> Sum:
        return add(
            *(
                self.product((*one, *two), bound or {}, a * b)
                for one, a in first.items()
                for two, b in second.items()
            )
        )

    def renamed(self, sum_: Sum, names: Mapping[int, int]) -> Sum:
        """The sum over other indices; two that become one are a diagonal."""
        return add(
            *(
                self.product([_renamed(factor, names) for factor in each], {}, coefficient)
                for each, coefficient in sum_.items()
            )
        )

    def powered(self, sum_: Sum, power: Power) -> Sum | None:
        """The power of a single product; None where that is no product.

        A root is taken of one factor alone, because √(a²) is not a, and √(a b) not √a √b where both
        are negative.
        """
        power = whole(power)
        if power == 1 or len(sum_) != 1:
            return sum_ if power == 1 else None
        ((factors, coefficient),) = sum_.items()
        if isinstance(power, Fraction):
            arrays = [f for f in factors if not isinstance(self.bases[f.base], Size)]
            if coefficient != 1 or len(arrays) > 1:
                return None
            if any(f.power not in (1, -1) and not isinstance(f.power, Fraction) for f in factors):
                return None
        changed = [f._replace(power=whole(f.power * power)) for f in factors]
        by = coefficient**power if isinstance(power, int) else Fraction(1)
        return self.product(changed, {}, by)

    def replaced(self, sum_: Sum, base: int, definition: Sum) -> Sum | None:
        """The sum with an array's definition in its place, inside components too; None where a
        power forbids it.
        """
        total: Sum = {}
        for term, coefficient in sum_.items():
            found = self._replaced(term, base, definition)
            if found is None:
                return None
            total = add(total, scaled(found, coefficient))
        return total

    def _replaced(self, term: Term, base: int, definition: Sum) -> Sum | None:
        for at, each in enumerate(term):
            if base not in self.inside(each.base):
                continue
            if not isinstance(each.power, int) or each.power < 1:
                return None
            rest = term[:at] + term[at + 1 :]
            if each.power > 1:
                rest = (*rest, each._replace(power=each.power - 1))
            bound: dict[int, Size] = {}
            if each.base == base:
                node = self.bases[base]
                assert isinstance(node, Node)
                names = dict(zip(axes_of(node), each.indices, strict=True))
                inner: Sum | None = self.renamed(definition, names)
            else:
                factors, bound = self.opened(each)
                inner = self._replaced(tuple(factors), base, definition)
            if inner is None:
                return None
            made = add(*(self.product((*rest, *t), bound, c) for t, c in inner.items()))
            return self.replaced(made, base, definition)
        return {term: Fraction(1)}

    def _merged(self, factors: Iterable[Factor]) -> list[Factor] | None:
        """Equal factors as one; None where a mask meets its opposite."""
        powers: dict[tuple[int, tuple[int, ...]], Power] = {}
        for base, indices, power in factors:
            powers[base, indices] = powers.get((base, indices), 0) + power
        found = []
        for (base, indices), power in powers.items():
            own = self.bases[base]
            if isinstance(own, Mask):
                opposite = self.number(Mask(own.condition, not own.inverted))
                if (opposite, indices) in powers:
                    return None
                power = 1
            if power:
                found.append(Factor(base, indices, whole(power)))
        return found

    def _without_facts(
        self, factors: list[Factor], bound: dict[int, Size], coefficient: Fraction
    ) -> tuple[list[Factor], Fraction]:
        """Factors that are alone under their sum leave with it, where the sum is known."""
        changed = True
        while changed:
            changed = False
            for at, each in enumerate(factors):
                for fact in self.facts.get(each.base, ()) if each.power == 1 else ():
                    node = self.bases[each.base]
                    assert isinstance(node, Node)
                    places = dict(zip(axes_of(node), each.indices, strict=True))
                    over = {places[axis] for axis in fact.over if axis in places}
                    rest = factors[:at] + factors[at + 1 :]
                    others = {index for f in rest for index in f.indices}
                    own = [i for axis, i in places.items() if axis not in fact.over]
                    if over <= bound.keys() and not over & (others | set(own)):
                        self.used.append(fact)
                        factors, coefficient, changed = rest, coefficient * fact.value, True
                        # What the constant leaves of the array's other axes is summed as any index.
                        for index in over:
                            bound.pop(index)
                        break
                if changed:
                    break
        return factors, coefficient

    def _without_guards(self, factors: list[Factor]) -> list[Factor]:
        """A product without a guarded sum over its divisor, where one of its parts is a factor too.

        That quotient is 1, but 0 in rows in which every part is 0, and so is the product with one.
        """
        found = list(factors)
        for at, divisor in enumerate(factors):
            guarded = self.guarded.get(divisor.base)
            if guarded is None or divisor.power >= 0:
                continue
            sums = (k for k, f in enumerate(found) if f.base == guarded.total and f.power >= 1)
            place = next((k for k in sums if found[k].indices == divisor.indices), None)
            others = (f for k, f in enumerate(found) if k not in (at, place))
            if place is None or not any(self._has_part(f, guarded, divisor) for f in others):
                continue
            found[at] = divisor._replace(power=whole(divisor.power + 1))
            found[place] = found[place]._replace(power=whole(found[place].power - 1))
        return [f for f in found if f.power]

    def _has_part(self, factor: Factor, guarded: GuardedSum, divisor: Factor) -> bool:
        """Return whether a factor is a part of a sum in the divisor's rows, or adds such up."""
        own = self.bases[factor.base]
        places = dict(enumerate(factor.indices))
        inner = [
            f._replace(indices=tuple(places.get(i, -1) for i in f.indices))
            for f in (own.term if isinstance(own, Component) else ())
        ]
        return factor.power >= 1 and any(
            f.base == guarded.part
            and f.power >= 1
            and tuple(f.indices[k] for k in guarded.kept) == divisor.indices
            for f in (factor, *inner)
        )

    def _split(self, factors: list[Factor], bound: dict[int, Size]) -> list[Factor]:
        """Factors that bound indices hold together, as components; the others as they are."""
        out = [f for f in factors if bound.keys().isdisjoint(f.indices)]
        waiting = [f for f in factors if not bound.keys().isdisjoint(f.indices)]
        while waiting:
            group = [waiting.pop()]
            indices = set(group[0].indices) & bound.keys()
            while near := [f for f in waiting if indices & set(f.indices)]:
                waiting = [f for f in waiting if not indices & set(f.indices)]
                group += near
                indices |= {i for f in near for i in f.indices if i in bound}
            out.append(self._component(group, {i: bound[i] for i in indices}))
        return out

    def _component(self, factors: list[Factor], bound: dict[int, Size]) -> Factor:
        """The factor of a component in canonical form: of all ways to number its indices the
        first.
        """
        free = sorted({i for f in factors for i in f.indices if i not in bound})
        best: tuple[Term, list[int], dict[int, int]] | None = None
        orders = itertools.product(_orders(free, factors), _orders(list(bound), factors))
        for outer, inner in itertools.islice(orders, _MOST_ORDERS):
            names = dict(zip(outer, itertools.count(), strict=False))
            names |= dict(zip(inner, itertools.count(BOUND), strict=False))
            term = tuple(sorted(_renamed(f, names) for f in factors))
            if best is None or term < best[0]:
                best = (term, outer, names)
        assert best is not None
        term, outer, names = best
        sizes = tuple(sorted(((names[i], size) for i, size in bound.items()), key=lambda p: p[0]))
        return Factor(self.number(Component(term, sizes)), tuple(outer))


def _renamed(factor: Factor, names: Mapping[int, int]) -> Factor:
    return factor._replace(indices=tuple(names.get(i, i) for i in factor.indices))


def _orders(indices: list[int], factors: list[Factor]) -> Iterator[list[int]]:
    """Orders of indices by the places where they occur; those that look alike in every order."""
    places = {
        index: sorted(
            (f.base, f.power, at) for f in factors for at, i in enumerate(f.indices) if i == index
        )
        for index in indices
    }
    ranked = sorted(indices, key=lambda index: places[index])
    groups = [list(group) for _, group in itertools.groupby(ranked, key=lambda i: places[i])]
    for order in itertools.product(*map(itertools.permutations, groups)):
        yield list(itertools.chain(*order))
