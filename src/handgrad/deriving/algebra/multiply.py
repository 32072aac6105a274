"""Products of pieces, small ones first, with their axes where a layout has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from handgrad.deriving.algebra.pieces import Piece, aligned, order
from handgrad.program.node import Node, as_node, build
from handgrad.program.sizes import Size


@dataclass
class Multiplier:
    """Multiplies pieces; `sizes` are those of the indices that are being written."""

    volume: Callable[[Iterable[int], dict[int, Size]], float]
    sizes: dict[int, Size] = field(default_factory=dict)
    #: How often two bases meet in a product: those that do so often meet first, once for all.
    pairs: dict[frozenset[int], int] = field(default_factory=dict)
    #: Nodes that are not to be read though they are there.
    again: set[int] = field(default_factory=set)
    _copies: dict[int, Node] = field(default_factory=dict)

    def product(self, pieces: Sequence[Piece], layout: tuple[int, ...]) -> Piece:
        """All pieces multiplied; of all pairs the one with the smallest product first."""
        left = list(pieces)
        if not left:
            return Piece(as_node(1.0), ())
        while len(left) > 1:
            pairs = ((i, j) for j in range(len(left)) for i in range(j))

            def price(pair: tuple[int, int]) -> tuple[float, int, bool, int, int]:
                first, second = left[pair[0]], left[pair[1]]
                union = self.reach({*first.indices, *second.indices})
                often = self.pairs.get(frozenset((first.base, second.base)), 0)
                return union, -often, first.below != second.below and first.below, *pair

            i, j = min(pairs, key=price)
            left.insert(i, self.times(left[i], left.pop(j), layout))
            left.pop(i + 1)
        return Piece(self.node(left[0]), left[0].indices)

    def times(self, first: Piece, second: Piece, layout: tuple[int, ...]) -> Piece:
        indices = order({*first.indices, *second.indices}, layout)
        one, two = (aligned(piece, layout) for piece in (first, second))
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

    def node(self, piece: Piece) -> Node:
        return build("divide", 1.0, piece.node) if piece.below else piece.node

    def joined(self, op: str, first: Piece, second: Piece, layout: tuple[int, ...]) -> Piece:
        indices = order({*first.indices, *second.indices}, layout)
        nodes = [aligned(piece, layout) for piece in (first, second)]
        if all(node.kind == "b" for node in nodes):  # NumPy adds truths to a truth
            nodes[0] = build("astype", nodes[0], kind="f")
        return Piece(build(op, *nodes), indices)

    def reach(self, indices: Iterable[int]) -> float:
        """The number of elements over indices."""
        return self.volume(indices, self.sizes)

    def chosen(
        self, condition: Piece, yes: Piece | float, no: Piece | float, layout: tuple[int, ...]
    ) -> Piece:
        """One of two by a condition: chosen, not multiplied, so that no infinity meets a zero."""
        used = [piece for piece in (condition, yes, no) if isinstance(piece, Piece)]
        indices = order({i for piece in used for i in piece.indices}, layout)
        nodes = [aligned(p, layout) if isinstance(p, Piece) else p for p in (condition, yes, no)]
        return Piece(build("where", *nodes), indices)
