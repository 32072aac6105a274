"""A forward as its program, each operation of which can be run again on other values.

Every array that an expression makes on its way is a node: in `tanh(x @ W + b)` the product, the sum
and the tanh. So a backward can be asked of each of its arrays what it is the gradient of, even
where the forward has no name for that.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

import numpy as np

from handgrad.checking.trial import leaves
from handgrad.program import Node, ProgramError, trace, values_of
from handgrad.program import leaves as nodes_in
from handgrad.program.running import numbers
from handgrad.program.words import symbol, words
from handgrad.trees import Function

_EPSILON: Final = float(np.finfo(np.float64).eps)


class Straight:
    """One run of a forward that returns (y, cache).

    A place is the number of a node as text; `values` holds what stands there, `versions` the places
    of a name in the order of assignment, and `inside` all places that its assignments made on their
    way. Raises ProgramError where the forward does not return a pair.
    """

    def __init__(
        self, function: Function, arrays: Sequence[Any], options: Mapping[str, Any]
    ) -> None:
        program = trace(function.source, *arrays, **options)
        if not isinstance(program.result, tuple) or len(program.result) != 2:
            raise ProgramError(f"{function.name} returns no pair; allowed: return y, cache")
        self.nodes = {str(node.number): node for node in program.nodes}
        self.values: dict[str, Any] = {place: node.value for place, node in self.nodes.items()}
        #: The forward's own words for what a place holds.
        self.words = {
            place: symbol(node.name) if node.name else words(node)
            for place, node in self.nodes.items()
        }
        self.parameters = {
            str(node.number) for node in nodes_in(dict(program.arguments)) if node.op == "input"
        }
        self.versions: dict[str, list[str]] = {}
        self.inside: dict[str, list[str]] = {}
        for name, value in program.arguments.items():
            if isinstance(value, Node):
                self.versions[name] = [str(value.number)]
        made = 0
        for each in program.assignments:
            if each.frame is not program.frame or not isinstance(each.value, Node):
                continue
            place, last = str(each.value.number), each.value.number
            versions = self.versions.setdefault(each.name, [])
            if place not in versions:
                versions.append(place)
            self.inside.setdefault(each.name, []).extend(map(str, range(made, last + 1)))
            made = max(made, last + 1)
        self.y, cache = program.result
        self.output, self.cache = values_of(self.y), values_of(cache)
        self._ends = frozenset(nodes_in(self.y))
        self._order = program.nodes

    # Running it again

    def contraction(
        self,
        place: str,
        cuts: Mapping[str, Any],
        dy: Any,
        *,
        held: Container[str] = (),
        unread: str | None = None,
        passed: tuple[str, str] | None = None,
    ) -> Callable[[Mapping[str, Any]], float]:
        """What the gradient of a place is the gradient of, as a function of the value there.

        The sum of <value, cotangent> over the places of `cuts`, behind which nothing moves, and
        over y with `dy`, counted from the values of the run. What a wrong backward may have taken
        it for: the places in `held` do not move; `unread`, a later place or "y", does not read this
        one; the second of `passed` moves as the first does, as if it were the same.
        """
        start = self.nodes[place]
        first, second = (self.nodes[each] for each in passed) if passed else (None, None)
        ends = {self.nodes[each]: cut for each, cut in cuts.items()}
        behind = [
            node
            for node in self._order[self._order.index(start) + 1 :]
            if node.function is not None and str(node.number) not in held
        ]

        def total(point: Mapping[str, Any]) -> float:
            moved: dict[Node, Any] = {start: point[place]}
            still = ChainMap({start: start.value}, moved)
            sum_ = 0.0
            for node in behind:
                if not any(each in moved for each in node.operands):
                    continue
                read = still if str(node.number) == unread else moved
                args, kwargs = values_of(node.args, read), values_of(dict(node.kwargs), read)
                result = numbers(node, args, kwargs)
                if node is second and first in moved:
                    assert first is not None
                    result = node.value + (moved[first] - first.value)
                if node in ends:
                    sum_ += _moved(result, node.value, ends[node])
                else:
                    moved[node] = result
            if not self._ends.isdisjoint(moved):
                y = values_of(self.y, still if unread == "y" else moved)
                pairs = zip(leaves(y), leaves(self.output), leaves(dy), strict=True)
                sum_ += sum(_moved(*each) for each in pairs)
            return float(sum_)

        return total

    def readers(self, place: str) -> list[str]:
        """The places made directly from this one, and "y" if y is."""
        node = self.nodes[place]
        found = [str(each.number) for each in self._order if node in each.operands]
        return [*found, "y"] if node in self._ends else found

    def behind(self, place: str) -> list[str]:
        """All places that this one moves."""
        moved = {self.nodes[place]}
        for node in self._order:
            if not moved.isdisjoint(node.operands):
                moved.add(node)
        return [str(each.number) for each in self._order if each in moved][1:]

    def noise(self, cuts: Mapping[str, Any], dy: Any) -> float:
        """How far rounding in the values alone moves a contraction."""
        ends = [(self.values[place], cut) for place, cut in cuts.items()]
        ends += zip(leaves(self.output), leaves(dy), strict=True)
        squares = sum(_size(value, cotangent) ** 2 for value, cotangent in ends)
        return 4.0 * _EPSILON * float(np.sqrt(squares))

    def arrays(self) -> list[str]:
        """The places of arrays of floats that the inputs move, in order."""
        moving: set[Node] = set()
        for node in self._order:
            if str(node.number) in self.parameters or not moving.isdisjoint(node.operands):
                moving.add(node)
        return [
            str(node.number) for node in self._order if node in moving and is_floats(node.value)
        ]


def is_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f"


def _moved(value: Any, start: Any, cotangent: Any) -> float:
    """<value − start, cotangent>; an infinity stays where it is."""
    known = np.isfinite(start)
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.where(known, value - start, 0.0) * cotangent))


def _size(value: Any, cotangent: Any) -> float:
    product = np.asarray(value * cotangent)
    return float(np.sqrt(np.sum(product[np.isfinite(product)] ** 2)))
