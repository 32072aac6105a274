"""Sums of products as nodes again, in the cheapest order: small factors meet first, what terms
share stands outside,
a sum with its length below it is a mean, and a product of two arrays that is summed is a contraction."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from handgrad.deriving.algebra.terms import (
    BOUND,
    Component,
    Factor,
    Mask,
    Power,
    Sum,
    Table,
    Term,
    axes_of,
    whole,
)
from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.contract import contract
from handgrad.program.sizes import ONE, Size


class Piece(NamedTuple):
    """A node whose axes longer than one are these indices, in this order; below the line where it
    divides.
    """

    node: Node
    indices: tuple[int, ...]
    below: bool = False
    #: The base that it is, where it is one as it stands.
    base: int = -1


@dataclass
class Writer:
    """Nodes of sums; `array` gives the node that stands for a base that is an array."""

    table: Table
    array: Callable[[Node], Node]
    volume: Callable[[Iterable[int], dict[int, Size]], float]
    #: Components that are needed as sums somewhere: elsewhere no mean of them is taken.
    sums: set[int] = field(default_factory=set)
    #: How often two bases meet in a product: those that do so often meet first, once for all.
    pairs: dict[frozenset[int], int] = field(default_factory=dict)
    #: Nodes that are not to be read though they are there.
    again: set[int] = field(default_factory=set)
    _sizes: dict[int, Size] = field(default_factory=dict)
    _copies: dict[int, Node] = field(default_factory=dict)
    _reductions: dict[tuple[int, tuple[int, ...], str], tuple[Node, bool]] = field(
        default_factory=dict
    )

    def write(self, sum_: Sum, shape: tuple[Size, ...]) -> Node:
        """A sum over the axes of this shape as a node of this shape."""
        axes = tuple(at for at, size in enumerate(shape) if size != ONE)
        self._sizes = dict(enumerate(shape))
        if not sum_:
            return build("zeros", shape=shape)
        piece = self._sum(sum_, axes)
        node = self._aligned(piece, axes, shape)
        if node.shape != shape:
            node = build("broadcast_to", node, shape=shape)
        return node

    # Sums

    def _sum(self, sum_: Sum, layout: tuple[int, ...]) -> Piece:
        return self._product(self._parts(sum_, layout), layout)

    def _parts(self, sum_: Sum, layout: tuple[int, ...]) -> list[Piece]:
        """Pieces whose product is a sum of terms: what saves most outside of those that share it,
        then the sum inside.
        """
        if len(sum_) == 1:
            ((term, coefficient),) = sum_.items()
            pieces = self._pieces(term, coefficient, layout)
            return pieces if coefficient > 0 else [self._negated(self._product(pieces, layout))]
        if (chosen := self._chosen(sum_, layout)) is not None:
            return chosen
        if (shared := self._shared(sum_)) is None:
            (first, coefficient), *rest = self._ordered(sum_)
            piece = self._product(self._pieces(first, coefficient, layout), layout)
            return [self._added(piece, coefficient < 0, dict(rest), layout)]
        inner, rest = dict[Term, Fraction](), dict[Term, Fraction]()
        for term, coefficient in sum_.items():
            without = _divided(term, shared)
            if without is None:
                rest[term] = coefficient
            else:
                inner[without] = coefficient
        number = _common_number(inner)
        inner = {term: c / number for term, c in inner.items()}
        pieces = [*self._scalars(number), *self._parts(inner, layout)]
        for each in shared:
            pieces += self._factor(each, layout)
        if not rest:
            return pieces
        return [self._added(self._product(pieces, layout), False, rest, layout)]

    def _chosen(self, sum_: Sum, layout: tuple[int, ...]) -> list[Piece] | None:
        """Terms under a condition and terms under its opposite, as one choice between two sums."""
        held = {f for term in sum_ for f in term if isinstance(self.table.bases[f.base], Mask)}
        for each in sorted(held):
            mask = self.table.bases[each.base]
            assert isinstance(mask, Mask)
            opposite = self.table.number(Mask(mask.condition, not mask.inverted))
            if mask.inverted or each._replace(base=opposite) not in held:
                continue
            sides: list[Sum] = []
            for factor in (each, each._replace(base=opposite)):
                sides.append({_without(t, factor): c for t, c in sum_.items() if factor in t})
            rest = {
                t: c
                for t, c in sum_.items()
                if not any(_without(t, f) != t for f in (each, each._replace(base=opposite)))
            }
            yes, no = (self._sum(side, layout) for side in sides)
            indices = self._order({*yes.indices, *no.indices, *each.indices}, layout)
            condition = Piece(self.array(mask.condition), each.indices)
            nodes = [self._aligned(piece, layout) for piece in (condition, yes, no)]
            made = Piece(build("where", *nodes), indices)
            return [self._added(made, False, rest, layout)]
        return None

    def _ordered(self, sum_: Sum) -> list[tuple[Term, Fraction]]:
        """Terms with a plus first, the largest first."""
        return sorted(sum_.items(), key=lambda t: (t[1] < 0, -self._reach(t[0]), t[0]))

    def _negated(self, piece: Piece) -> Piece:
        return Piece(-piece.node, piece.indices)

    def _added(self, piece: Piece, negative: bool, rest: Sum, layout: tuple[int, ...]) -> Piece:
        """A piece and the terms after it."""
        if negative:
            piece = self._negated(piece)
        if len(rest) > 1 and self._shared(rest) is not None:
            return self._joined("add", piece, self._sum(rest, layout), layout)
        for term, coefficient in self._ordered(rest):
            other = self._product(self._pieces(term, coefficient, layout), layout)
            piece = self._joined("subtract" if coefficient < 0 else "add", piece, other, layout)
        return piece

    def _reach(self, term: Term) -> float:
        return self.volume({i for f in term for i in f.indices}, self._sizes)

    def _shared(self, sum_: Sum) -> Term | None:
        """The factors that save most when they stand outside: all that every term has, or one that
        some have.
        """
        found: set[Term] = set()
        common: Term | None = None
        for term in sum_:
            lengths = self._lengths(term)
            usable = [f for f in term if not (f.power < 0 and f.base in lengths)]
            for each in usable:
                one = 1 if each.power > 0 else -1
                found |= {(each,), (each._replace(power=one),)}
            own = tuple(f for f in usable)
            common = own if common is None else _greatest(common, own)
        candidates = sorted(found | ({common} if common else set()))
        best: tuple[float, int, int] | None = None
        chosen = None
        for key in candidates:
            inner = [(t, without) for t in sum_ if (without := _divided(t, key)) is not None]
            if len(inner) < 2:
                continue
            saved = sum(self._work(t) - self._work(without) for t, without in inner)
            reach = {i for _, t in inner for f in t for i in f.indices}
            outside = self.volume(reach | {i for f in key for i in f.indices}, self._sizes)
            gain = saved - outside - self._work(key)
            # Equal work with one factor fewer to read is taken where all terms share it.
            rank = (gain, len(inner), len(key))
            if (gain > 1e-9 or (len(inner) == len(sum_) and gain > -1e-9)) and (
                best is None or rank > best
            ):
                best, chosen = rank, key
        return chosen

    def _work(self, term: Term) -> float:
        """The products that a term takes, small ones first."""
        sets = []
        for each in term:
            count = abs(each.power)
            sets += [frozenset(each.indices)] * (int(count) if count >= 1 else 1)
        total = 0.0
        while len(sets) > 1:
            pairs = ((i, j) for j in range(len(sets)) for i in range(j))
            i, j = min(
                pairs, key=lambda pair: self.volume(sets[pair[0]] | sets[pair[1]], self._sizes)
            )
            union = sets[i] | sets.pop(j)
            sets[i] = union
            total += self.volume(union, self._sizes)
        return total

    def _lengths(self, term: Term) -> set[int]:
        """Lengths that make a mean of a sum in this term."""
        found: set[int] = set()
        for each in term:
            component = self.table.bases[each.base]
            if isinstance(component, Component) and each.power == 1:
                for _, size in component.sizes:
                    ((lengths, _number),) = self.table.size(size).items()
                    found |= {f.base for f in lengths}
        return found

    def meet(self, sum_: Sum) -> None:
        """Notes which bases meet in the products of a sum, and inside its components."""
        for term in sum_:
            bases = [f.base for f in term if f.power > 0]
            for pair in itertools.combinations(sorted(bases), 2):
                key = frozenset(pair)
                self.pairs[key] = self.pairs.get(key, 0) + 1
            for each in term:
                component = self.table.bases[each.base]
                if isinstance(component, Component):
                    self.meet({component.term: Fraction(1)})

    def unaveraged(self, sum_: Sum) -> set[int]:
        """The components that a sum has without their lengths below them."""
        found: set[int] = set()
        for term in sum_:
            divisors = {f.base for f in term if f.power < 0}
            for each in term:
                component = self.table.bases[each.base]
                if isinstance(component, Component) and not self._lengths((each,)) <= divisors:
                    found.add(each.base)
        return found

    def _joined(self, op: str, first: Piece, second: Piece, layout: tuple[int, ...]) -> Piece:
        indices = self._order({*first.indices, *second.indices}, layout)
        nodes = [self._aligned(piece, layout) for piece in (first, second)]
        return Piece(build(op, *nodes), indices)

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
        product = self._product(pieces, layout)
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
            return self._powers(Piece(as_node(base), ()), power)
        if isinstance(base, Component):
            piece = self._component(factor, layout, mean=False)
        elif isinstance(base, Mask):
            one = Piece(as_node(1.0), ())
            piece = self._masked(factor, one, layout)
        else:
            piece = Piece(self.array(base), factor.indices, base=factor.base)
        return self._powers(piece, power)

    def _powers(self, piece: Piece, power: Power) -> list[Piece]:
        size = abs(power)
        if isinstance(size, int):
            if size > 4:
                return [Piece(build("power", piece.node, size), piece.indices, power < 0)]
            return [piece._replace(below=power < 0)] * size
        if size.denominator == 2:
            root = Piece(build("sqrt", piece.node), piece.indices, power < 0)
            return [root, *[piece._replace(below=power < 0)] * int(size)]
        return [Piece(build("power", piece.node, float(size)), piece.indices, power < 0)]

    def _masked(self, factor: Factor, piece: Piece, layout: tuple[int, ...]) -> Piece:
        """Zero where the condition does not hold: chosen, not multiplied, so that no infinity
        times zero arises.
        """
        mask = self.table.bases[factor.base]
        assert isinstance(mask, Mask)
        indices = self._order({*piece.indices, *factor.indices}, layout)
        condition = self._aligned(Piece(self.array(mask.condition), factor.indices), layout)
        value = self._aligned(piece, layout)
        chosen = (0.0, value) if mask.inverted else (value, 0.0)
        return Piece(build("where", condition, *chosen), indices)

    def _product(self, pieces: Sequence[Piece], layout: tuple[int, ...]) -> Piece:
        """All pieces multiplied; of all pairs the one with the smallest product first."""
        left = list(pieces)
        if not left:
            return Piece(as_node(1.0), ())
        while len(left) > 1:
            pairs = ((i, j) for j in range(len(left)) for i in range(j))

            def price(pair: tuple[int, int]) -> tuple[float, int, bool, int, int]:
                first, second = left[pair[0]], left[pair[1]]
                union = self.volume({*first.indices, *second.indices}, self._sizes)
                often = self.pairs.get(frozenset((first.base, second.base)), 0)
                return union, -often, first.below != second.below and first.below, *pair

            i, j = min(pairs, key=price)
            left.insert(i, self._times(left[i], left.pop(j), layout))
            left.pop(i + 1)
        return Piece(self._node(left[0]), left[0].indices)

    def _times(self, first: Piece, second: Piece, layout: tuple[int, ...]) -> Piece:
        indices = self._order({*first.indices, *second.indices}, layout)
        one, two = (self._aligned(piece, layout) for piece in (first, second))
        if first.below == second.below:
            return Piece(self._fresh(build("multiply", one, two)), indices, first.below)
        if first.below:
            one, two = two, one
        return Piece(self._fresh(build("divide", one, two)), indices)

    def _fresh(self, node: Node) -> Node:
        """A node, or one like it where that is not to be read."""
        if id(node) not in self.again:
            return node
        if id(node) not in self._copies:
            copy = Node(node.op, node.args, node.attrs, node.shape, node.kind, node.value)
            self._copies[id(node)] = copy
        return self._copies[id(node)]

    def _node(self, piece: Piece) -> Node:
        return build("divide", 1.0, piece.node) if piece.below else piece.node

    # Components

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
                    without = _divided(without, (length._replace(power=-length.power),))
            shared = each.base in self.sums
            if each.power == 1 and number == 1 and lengths and without is not None and not shared:
                pieces.append(self._component(each, layout, mean=True))
                term = without
        return term, pieces

    def _component(self, factor: Factor, layout: tuple[int, ...], *, mean: bool) -> Piece:
        """The sum or mean of a product."""
        component = self.table.bases[factor.base]
        assert isinstance(component, Component)
        factors, bound = self.table.opened(factor._replace(power=1))
        self._sizes |= bound
        widest = max(factors, key=lambda f: self.volume(f.indices, self._sizes))
        every = dict.fromkeys([*widest.indices, *(i for f in factors for i in f.indices)])
        inner = self._inner_layout(tuple(every), layout, bound)
        masks = [f for f in factors if isinstance(self.table.bases[f.base], Mask)]
        pieces = [p for f in factors if f not in masks for p in self._factor(f, inner)]
        if not masks:
            return self._eliminated(pieces, bound, inner, layout, mean=mean)
        product = self._product(pieces, inner)
        for each in masks:
            product = self._masked(each, product, inner)
        return self._reduced(product, inner, bound, layout, mean=mean)

    def _eliminated(
        self,
        pieces: list[Piece],
        bound: dict[int, Size],
        inner: tuple[int, ...],
        layout: tuple[int, ...],
        *,
        mean: bool,
    ) -> Piece:
        """A sum of a product: indices that few factors have are summed first, the cheapest before
        the others.
        """
        left, waiting = list(pieces), dict(bound)
        while not mean:
            groups: dict[frozenset[int], list[int]] = {}
            for index in waiting:
                key = frozenset(at for at, piece in enumerate(left) if index in piece.indices)
                groups.setdefault(key, []).append(index)
            partial = [group for group in groups if len(group) < len(left)]
            if not partial:
                break

            def reach(group: frozenset[int]) -> tuple[float, list[int]]:
                every = {i for at in group for i in left[at].indices}
                return self.volume(every, self._sizes), sorted(group)

            group = min(partial, key=reach)
            over = {index: waiting.pop(index) for index in groups[group]}
            made = self._summed([left[at] for at in sorted(group)], over, inner, inner, mean=False)
            left = [piece for at, piece in enumerate(left) if at not in group] + [made]
            if not waiting:
                return self._product(left, layout)
        return self._summed(left, waiting, inner, layout, mean=mean)

    def _summed(
        self,
        pieces: list[Piece],
        bound: dict[int, Size],
        inner: tuple[int, ...],
        layout: tuple[int, ...],
        *,
        mean: bool,
    ) -> Piece:
        if not mean and (made := self._contracted(pieces, bound, layout)) is not None:
            return made
        return self._reduced(self._product(pieces, inner), inner, bound, layout, mean=mean)

    def _inner_layout(
        self, every: tuple[int, ...], layout: tuple[int, ...], bound: dict[int, Size]
    ) -> tuple[int, ...]:
        """The order of axes inside a sum: bound indices stand where the outer layout leaves a
        place.
        """
        free = [i for i in every if i not in bound]
        missing = [i for i in layout if i not in free]
        if len(every) == len(layout) and len(missing) == len(bound):
            places = dict(zip(missing, (i for i in every if i in bound), strict=True))
            if all(self._sizes.get(i) == self._sizes.get(j) for i, j in places.items()):
                return tuple(places.get(i, i) for i in layout)
        return every

    def _reduced(
        self,
        product: Piece,
        full: tuple[int, ...],
        bound: dict[int, Size],
        layout: tuple[int, ...],
        *,
        mean: bool,
    ) -> Piece:
        node = self._aligned(product, full)
        shift = len(full) - node.ndim
        axes = tuple(at - shift for at, index in enumerate(full) if index in bound)
        left = tuple(i for i in full if i not in bound and i in product.indices)
        keeps = len(full) == len(layout) and all(layout[full.index(i)] == i for i in left)
        op = "mean" if mean else "sum"
        # Leading axes need not be kept, and what one reader kept another need not sum again.
        keeps = keeps and bool(left) and axes != tuple(range(len(axes)))
        _, keeps = self._reductions.setdefault((id(node), axes, op), (node, keeps))
        return Piece(build(op, node, axis=axes, keepdims=keeps), left)

    def _contracted(
        self, pieces: list[Piece], bound: dict[int, Size], layout: tuple[int, ...]
    ) -> Piece | None:
        """Two arrays of which neither has all indices of the other, or one has fewer: a
        contraction.
        """
        grouped: list[Piece] = []
        for piece in sorted(pieces, key=lambda p: len(p.indices), reverse=True):
            same = [k for k, g in enumerate(grouped) if set(g.indices) == set(piece.indices)]
            if same:
                grouped[same[0]] = self._times(grouped[same[0]], piece, grouped[same[0]].indices)
            else:
                grouped.append(piece)
        while len(grouped) > 2 and (pair := self._absorbing(grouped)) is not None:
            small, large = pair
            grouped[large] = self._times(grouped[large], grouped[small], grouped[large].indices)
            grouped.pop(small)
        if len(grouped) != 2 or any(p.below for p in grouped):
            return None
        first, second = grouped
        common = set(first.indices) & set(second.indices)
        if set(bound) - common or not common or not second.indices:
            return None
        kept = {*first.indices, *second.indices} - bound.keys()
        out = self._order(kept, tuple(dict.fromkeys([*layout, *first.indices, *second.indices])))
        nodes = [self._bare(piece) for piece in (first, second)]
        return Piece(contract(nodes[0], nodes[1], first.indices, second.indices, out), out)

    def _absorbing(self, pieces: list[Piece]) -> tuple[int, int] | None:
        """The smallest piece that another has all indices of, and the smallest such other."""
        pairs = [
            (self.volume(b.indices, self._sizes), self.volume(a.indices, self._sizes), i, j)
            for i, a in enumerate(pieces)
            for j, b in enumerate(pieces)
            if i != j and set(a.indices) < set(b.indices)
        ]
        return min(pairs)[2:] if pairs else None

    # Layouts

    def _order(self, indices: Iterable[int], layout: tuple[int, ...]) -> tuple[int, ...]:
        """Indices in the order of a layout, those that it does not have first."""
        places = {index: at for at, index in enumerate(layout)}
        return tuple(sorted(indices, key=lambda index: (places.get(index, -1), index)))

    def _bare(self, piece: Piece) -> Node:
        node = piece.node
        return build("reshape", node, shape=tuple(node.shape[a] for a in axes_of(node)))

    def _aligned(
        self, piece: Piece, indices: tuple[int, ...], shape: tuple[Size, ...] | None = None
    ) -> Node:
        """A piece with its axes where these indices stand, of length one for those that it has
        not.
        """
        rank = len(indices) if shape is None else len(shape)
        places = {index: index if shape is not None else at for at, index in enumerate(indices)}
        at = {
            places[index]: axis
            for index, axis in zip(piece.indices, axes_of(piece.node), strict=True)
        }
        node = piece.node
        sizes = tuple(node.shape[at[k]] if k in at else ONE for k in range(rank))
        if node.ndim == rank and node.shape == sizes and list(at.values()) == sorted(at.values()):
            return node
        while sizes and sizes[0] == ONE and node.ndim < rank:
            sizes = sizes[1:]
            rank -= 1
        order = [axis for _, axis in sorted(at.items())]
        if order != sorted(order):
            bare = build("reshape", node, shape=tuple(node.shape[a] for a in axes_of(node)))
            ranks = sorted(order)
            node = build("transpose", bare, axes=tuple(ranks.index(a) for a in order))
        return build("reshape", node, shape=sizes)


def _divided(term: Term, factors: Term) -> Term | None:
    """A term without factors; None where it does not have them to these powers."""
    found = list(term)
    for factor in factors:
        for at, each in enumerate(found):
            if each.base == factor.base and each.indices == factor.indices:
                left = whole(each.power - factor.power)
                if each.power * factor.power <= 0 or abs(left) >= abs(each.power):
                    return None
                found[at : at + 1] = [each._replace(power=left)] if left else []
                break
        else:
            return None
    return tuple(sorted(found))


def _greatest(first: Term, second: Term) -> Term:
    """The factors that two terms have in common, with the power that they share."""
    powers = {f[:2]: f.power for f in second}
    found = []
    for each in first:
        other = powers.get(each[:2], 0)
        if each.power * other > 0:
            found.append(each._replace(power=min(each.power, other, key=abs)))
    return tuple(found)


def _without(term: Term, factor: Factor) -> Term:
    return tuple(f for f in term if f != factor)


def _common_number(sum_: Sum) -> Fraction:
    """What all coefficients have in common, so that the first is one."""
    numbers = {abs(c) for c in sum_.values()}
    return min(numbers) if len(numbers) == 1 else Fraction(1)


__all__ = ["BOUND", "Piece", "Writer"]
