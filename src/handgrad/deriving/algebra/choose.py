"""The cost of nodes: multiply-adds of contractions, elements of the rest, at lengths at which the
order of growth tells.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from handgrad.program.node import Loop, Node
from handgrad.program.sizes import Size

#: The example's lengths are small; at these multiples a row costs little beside its elements.
_LARGER: Final = 8
#: An element of a function is worth so many products.
_FUNCTION: Final = 4.0
#: To keep an element and read it again is worth so many.
_KEPT: Final = 2.0
#: Arrays that come in, or go out, are often there anyway: they are worth this share of others.
_COMES: Final = 0.5
_GOES: Final = 0.75
_FREE: Final = frozenset(
    [
        "const",
        "table",
        "size",
        "input",
        "reshape",
        "transpose",
        "broadcast_to",
        "part",
        "stop",
        "zeros",
        "ones",
        "arange",
        "getitem",
        "diagonal",
    ]
)
_CHEAP: Final = frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "negative",
        "square",
        "where",
        "maximum",
        "minimum",
        "greater",
        "less",
        "greater_equal",
        "less_equal",
        "equal",
        "not_equal",
        "abs",
        "sign",
        "add_at",
        "store",
    ]
)
_REDUCTIONS: Final = frozenset(("sum", "mean", "max", "min", "prod", "any", "all", "cumsum"))


class Count(NamedTuple):
    """Multiply-adds of contractions, element-wise operations (functions, reductions), kept
    elements.
    """

    contractions: float
    elements: float
    kept: float = 0.0

    @property
    def total(self) -> float:
        return self.contractions + self.elements + _KEPT * self.kept


@dataclass
class Costs:
    """Costs of nodes at the lengths of a world, made larger."""

    lengths: Mapping[str, int]
    larger: int = _LARGER
    function: float = _FUNCTION
    comes: float = _COMES
    goes: float = _GOES
    _volumes: dict[Size, float] = field(default_factory=dict)
    _nodes: dict[int, tuple[Node, Count]] = field(default_factory=dict)

    def length(self, size: Size) -> float:
        if size not in self._volumes:
            lengths: dict[str, Size | int] = {
                letter: self.lengths.get(letter, 1) * self.larger for letter in size.letters
            }
            found = size.at(lengths).constant
            self._volumes[size] = float(max(found, 1)) if found is not None else 1.0
        return self._volumes[size]

    def volume(self, indices: Iterable[int], sizes: Mapping[int, Size]) -> float:
        """The number of elements over indices."""
        total = 1.0
        for index in set(indices):
            total *= self.length(sizes[index]) if index in sizes else 1.0
        return total

    def elements(self, node: Node) -> float:
        return self.volume(range(node.ndim), dict(enumerate(node.shape)))

    def of(self, node: Node) -> Count:
        """The cost of one node, without its operands."""
        if id(node) not in self._nodes:
            self._nodes[id(node)] = (node, self._count(node))
        return self._nodes[id(node)][1]

    def _count(self, node: Node) -> Count:
        if node.op in _FREE:
            return Count(0.0, 0.0)
        if node.op == "contract":
            sizes: dict[int, Size] = {}
            for operand, indices in zip(
                node.args, (node.attrs["left"], node.attrs["right"]), strict=True
            ):
                sizes |= dict(zip(indices, operand.shape, strict=True))
            return Count(self.volume(sizes, sizes), 0.0)
        if node.op == "loop":
            loop: Loop = node.attrs["loop"]
            inner = self.total(loop.body.outputs, (), free={id(n) for n in loop.body.inputs})
            count = self.length(Size.of(loop.count))
            return Count(inner.contractions * count, inner.elements * count)
        if node.op in _REDUCTIONS:
            return Count(0.0, self.elements(node.args[0]))
        if node.op in ("add_at", "store"):
            return Count(0.0, self.elements(node.args[1]))
        return Count(0.0, self.elements(node) * (1.0 if node.op in _CHEAP else self.function))

    def total(
        self,
        nodes: Iterable[Node],
        known: Container[int],
        *,
        there: Container[int] = (),
        free: Container[int] = (),
    ) -> Count:
        """The cost of all that nodes are made of; what is known by its id is kept, what is free
        costs nothing.
        """
        seen: set[int] = set()
        waiting = list(nodes)
        contractions = elements = kept = 0.0
        while waiting:
            node = waiting.pop()
            if id(node) in seen or id(node) in free:
                continue
            seen.add(id(node))
            if id(node) in known:
                if node.op not in ("const", "size", "table"):
                    share = (
                        self.comes
                        if node.op == "input"
                        else self.goes
                        if id(node) in there
                        else 1.0
                    )
                    kept += self.elements(node) * share
                continue
            count = self.of(node)
            contractions += count.contractions
            elements += count.elements
            waiting += node.args
        return Count(contractions, elements, kept)
