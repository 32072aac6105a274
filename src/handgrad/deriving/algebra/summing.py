"""Sums over bound indices as nodes: means, sums and contractions, in the cheapest order."""

from __future__ import annotations

from dataclasses import dataclass, field

from handgrad.deriving.algebra.multiply import Multiplier
from handgrad.deriving.algebra.pieces import Piece, aligned, bare, order
from handgrad.program.node import Node, build
from handgrad.program.primitives.contract import contract
from handgrad.program.sizes import ONE, Size


@dataclass
class Summation:
    """Sums products of pieces over indices."""

    times: Multiplier
    #: Of a sum that there is: whether it kept its axes.
    _reductions: dict[tuple[int, tuple[int, ...], str], tuple[Node, bool]] = field(
        default_factory=dict
    )

    def eliminated(
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

            reaches = [
                (self.times.reach({i for at in group for i in left[at].indices}), sorted(group))
                for group in partial
            ]
            group = frozenset(min(reaches)[1])
            over = {index: waiting.pop(index) for index in groups[group]}
            made = self._summed([left[at] for at in sorted(group)], over, inner, inner, mean=False)
            left = [piece for at, piece in enumerate(left) if at not in group] + [made]
            if not waiting:
                return self.times.product(left, layout)
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
        return self.reduced(self.times.product(pieces, inner), inner, bound, layout, mean=mean)

    def inner_layout(
        self, every: tuple[int, ...], layout: tuple[int, ...], bound: dict[int, Size]
    ) -> tuple[int, ...]:
        """The order of axes inside a sum: bound indices stand where the outer layout leaves a
        place.
        """
        free = [i for i in every if i not in bound]
        missing = [i for i in layout if i not in free]
        if len(every) == len(layout) and len(missing) == len(bound):
            places = dict(zip(missing, (i for i in every if i in bound), strict=True))
            sizes = self.times.sizes
            if all(sizes.get(i) in (ONE, sizes.get(j)) for i, j in places.items()):
                return tuple(places.get(i, i) for i in layout)
        return every

    def reduced(
        self,
        product: Piece,
        full: tuple[int, ...],
        bound: dict[int, Size],
        layout: tuple[int, ...],
        *,
        mean: bool,
    ) -> Piece:
        node = aligned(product, full)
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
                grouped[same[0]] = self.times.times(
                    grouped[same[0]], piece, grouped[same[0]].indices
                )
            else:
                grouped.append(piece)
        while len(grouped) > 2 and (pair := self._absorbing(grouped)) is not None:
            small, large = pair
            grouped[large] = self.times.times(
                grouped[large], grouped[small], grouped[large].indices
            )
            grouped.pop(small)
        if len(grouped) != 2 or any(p.below for p in grouped):
            return None
        first, second = grouped
        common = set(first.indices) & set(second.indices)
        if set(bound) - common or not common or not second.indices:
            return None
        kept = {*first.indices, *second.indices} - bound.keys()
        out = order(kept, tuple(dict.fromkeys([*layout, *first.indices, *second.indices])))
        one, two = (bare(piece) for piece in (first, second))
        made: Node = contract(one, two, first.indices, second.indices, out)  # type: ignore[no-untyped-call, unused-ignore]
        return Piece(made, out)

    def _absorbing(self, pieces: list[Piece]) -> tuple[int, int] | None:
        """The smallest piece that another has all indices of, and the smallest such other."""
        pairs = [
            (self.times.reach(b.indices), self.times.reach(a.indices), i, j)
            for i, a in enumerate(pieces)
            for j, b in enumerate(pieces)
            if i != j and set(a.indices) < set(b.indices)
        ]
        return min(pairs)[2:] if pairs else None
