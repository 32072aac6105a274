"""Sums of products as nodes again, in the cheapest order.

Small factors meet first, what terms share stands outside, a sum with its length below it is a mean,
and a product of two arrays that is summed is a contraction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from handgrad.deriving.algebra.multiply import Multiplier
from handgrad.deriving.algebra.pieces import (
    Piece,
    aligned,
    common_number,
    divided,
    powers,
    without_factor,
)
from handgrad.deriving.algebra.share import Sharing
from handgrad.deriving.algebra.summing import Summation
from handgrad.deriving.algebra.terms import BaseTable, Component, Factor, Mask, Sum, Term
from handgrad.program.node import Node, as_node, build
from handgrad.program.sizes import ONE, Size


@dataclass
class TermWriter:
    """Nodes of sums; `array` gives the node that stands for a base that is an array."""

    table: BaseTable
    array: Callable[[Node], Node]
    times: Multiplier

    def __post_init__(self) -> None:
        self.sharing = Sharing(self.table, self.times)
        self.summation = Summation(self.times)

    def write(self, sum_: Sum, shape: tuple[Size, ...]) -> Node:
        """A sum over the axes of this shape as a node of this shape."""
        axes = tuple(range(len(shape)))
        if not sum_:
            return build("zeros", shape=shape)
        # An array that is read may have to be written first, over axes of its own.
        saved, self.times.sizes = self.times.sizes, dict(enumerate(shape))
        node = aligned(self._sum(sum_, axes), axes, shape)
        self.times.sizes = saved
        if node.shape != shape:
            node = build("broadcast_to", node, shape=shape)
        return node

    # Sums

    def _sum(self, sum_: Sum, layout: tuple[int, ...]) -> Piece:
        return self.times.product(self._parts(sum_, layout), layout)

    def _parts(self, sum_: Sum, layout: tuple[int, ...]) -> list[Piece]:
        """Pieces whose product is a sum of terms: what saves most outside of those that share it,
        then the sum inside.
        """
        if len(sum_) == 1:
            ((term, coefficient),) = sum_.items()
            pieces = self._pieces(term, coefficient, layout)
            return (
                pieces if coefficient > 0 else [self._negated(self.times.product(pieces, layout))]
            )
        if (chosen := self._chosen(sum_, layout)) is not None:
            return chosen
        if (shared := self.sharing.shared(sum_)) is None:
            (first, coefficient), *others = self._ordered(sum_)
            piece = self.times.product(self._pieces(first, coefficient, layout), layout)
            return [self._added(piece, coefficient < 0, dict(others), layout)]
        inner: Sum = {}
        rest: Sum = {}
        for term, coefficient in sum_.items():
            without = divided(term, shared)
            if without is None:
                rest[term] = coefficient
            else:
                inner[without] = coefficient
        number = common_number(inner)
        inner = {term: c / number for term, c in inner.items()}
        pieces = [*self._scalars(number), *self._parts(inner, layout)]
        for each in shared:
            pieces += self._factor(each, layout)
        if not rest:
            return pieces
        return [self._added(self.times.product(pieces, layout), False, rest, layout)]

    def _chosen(self, sum_: Sum, layout: tuple[int, ...]) -> list[Piece] | None:
        """Terms under a condition and terms under its opposite, as one choice between two sums."""
        held = {f for term in sum_ for f in term if isinstance(self.table.bases[f.base], Mask)}
        for each in sorted(held):
            mask = self.table.bases[each.base]
            assert isinstance(mask, Mask)
            opposite = self.table.number(Mask(mask.condition, not mask.inverted))
            if mask.inverted or each._replace(base=opposite) not in held:
                continue
            other = each._replace(base=opposite)
            yes, no = (
                self._sum({without_factor(t, f): c for t, c in sum_.items() if f in t}, layout)
                for f in (each, other)
            )
            rest = {t: c for t, c in sum_.items() if each not in t and other not in t}
            condition = Piece(self.array(mask.condition), each.indices)
            made = self.times.chosen(condition, yes, no, layout)
            return [self._added(made, False, rest, layout)]
        return None

    def _ordered(self, sum_: Sum) -> list[tuple[Term, Fraction]]:
        """Terms with a plus first, the largest first."""
        return sorted(sum_.items(), key=lambda t: (t[1] < 0, -self._reach(t[0]), t[0]))

    def _reach(self, term: Term) -> float:
        return self.times.reach({i for f in term for i in f.indices})

    def _negated(self, piece: Piece) -> Piece:
        return Piece(-piece.node, piece.indices)

    def _added(self, piece: Piece, negative: bool, rest: Sum, layout: tuple[int, ...]) -> Piece:
        """A piece and the terms after it."""
        if negative:
            piece = self._negated(piece)
        if len(rest) > 1 and self.sharing.shared(rest) is not None:
            return self.times.joined("add", piece, self._sum(rest, layout), layout)
        for term, coefficient in self._ordered(rest):
            other = self.times.product(self._pieces(term, coefficient, layout), layout)
            piece = self.times.joined(
                "subtract" if coefficient < 0 else "add", piece, other, layout
            )
        return piece

    # Products

    def _pieces(self, term: Term, coefficient: Fraction, layout: tuple[int, ...]) -> list[Piece]:
        """The pieces of a product without its sign."""
        term, averaged = self._averages(term, layout)
        pieces = [*self._scalars(abs(coefficient)), *averaged]
        masks = [f for f in term if isinstance(self.table.bases[f.base], Mask)]
        for each in term:
            if each not in masks:
                pieces += self._factor(each, layout)
        if not masks:
            return pieces
        product = self.times.product(pieces, layout)
        for each in masks:
            product = self._masked(each, product, layout)
        return [product]

    def _scalars(self, number: Fraction) -> list[Piece]:
        number = abs(number)
        if number == 1:
            return []
        if number.denominator == 1:
            return [Piece(as_node(number.numerator), ())]
        if Fraction(repr(float(number))) == number:
            return [Piece(as_node(float(number)), ())]
        above = [Piece(as_node(number.numerator), ())] if number.numerator != 1 else []
        if number.denominator < 1 << 20:
            return [*above, Piece(as_node(number.denominator), (), below=True)]
        return [Piece(as_node(float(number)), ())]

    def _factor(self, factor: Factor, layout: tuple[int, ...]) -> list[Piece]:
        base, power = self.table.bases[factor.base], factor.power
        if isinstance(base, Size):
            return powers(Piece(as_node(base), ()), power)
        if isinstance(base, Component):
            piece = self._component(factor, layout, mean=False)
        elif isinstance(base, Mask):
            one = Piece(as_node(1.0), ())
            piece = self._masked(factor, one, layout)
        else:
            piece = Piece(self.array(base), factor.indices, base=factor.base)
        return powers(piece, power)

    def _masked(self, factor: Factor, piece: Piece, layout: tuple[int, ...]) -> Piece:
        mask = self.table.bases[factor.base]
        assert isinstance(mask, Mask)
        condition = Piece(self.array(mask.condition), factor.indices)
        yes, no = (0.0, piece) if mask.inverted else (piece, 0.0)
        return self.times.chosen(condition, yes, no, layout)

    def _averages(self, term: Term, layout: tuple[int, ...]) -> tuple[Term, list[Piece]]:
        """Sums that have their length below them, as means; the term without both."""
        pieces: list[Piece] = []
        for each in [f for f in term if isinstance(self.table.bases[f.base], Component)]:
            component = self.table.bases[each.base]
            assert isinstance(component, Component)
            total = ONE
            for _, size in component.sizes:
                total = total * size
            ((lengths, number),) = self.table.size(total).items()
            without: Term | None = tuple(f for f in term if f is not each)
            for length in lengths:
                if without is not None:
                    without = divided(without, (length._replace(power=-length.power),))
            shared = each.base in self.sharing.sums
            if each.power == 1 and number == 1 and lengths and without is not None and not shared:
                pieces.append(self._component(each, layout, mean=True))
                term = without
        return term, pieces

    def _component(self, factor: Factor, layout: tuple[int, ...], *, mean: bool) -> Piece:
        """The sum or mean of a product."""
        component = self.table.bases[factor.base]
        assert isinstance(component, Component)
        factors, bound = self.table.opened(factor._replace(power=1))
        self.times.sizes |= bound
        widest = max(factors, key=lambda f: self.times.reach(f.indices))
        every = dict.fromkeys([*widest.indices, *(i for f in factors for i in f.indices)])
        inner = self.summation.inner_layout(tuple(every), layout, bound)
        masks = [f for f in factors if isinstance(self.table.bases[f.base], Mask)]
        pieces = [p for f in factors if f not in masks for p in self._factor(f, inner)]
        if not masks:
            return self.summation.eliminated(pieces, bound, inner, layout, mean=mean)
        product = self.times.product(pieces, inner)
        for each in masks:
            product = self._masked(each, product, inner)
        return self.summation.reduced(product, inner, bound, layout, mean=mean)
