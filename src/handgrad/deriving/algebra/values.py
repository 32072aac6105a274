"""Values of nodes at the example and at other sizes and settings, where every step is looked at on
both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.deriving.algebra.facts import Assumption
from handgrad.program.node import Node, World, concrete
from handgrad.program.run import evaluated

#: Two float64 evaluations of one array differ by no more than this share of its largest value.
SAME: Final = 1e-8
#: Those of a program that makes arrays single, by no more than this.
SINGLE: Final = 1e-5
#: Ways to other sizes: more by so much, or by a factor; lengths that were equal stay so.
_OTHERS: Final = ((1, 1), (0, 2), (0, 1))


@dataclass
class Twin:
    """The values of nodes at other sizes, from elements of the example's own inputs."""

    lengths: dict[str, int]
    _values: dict[int, tuple[Node, Any]] = field(default_factory=dict)

    def value(self, node: Node) -> Any:
        waiting = [node]
        while waiting:
            each = waiting[-1]
            if id(each) in self._values:
                waiting.pop()
                continue
            missing = [a for a in each.args if id(a) not in self._values]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            self._values[id(each)] = (each, self._evaluated(each))
        return self._values[id(node)][1]

    def _evaluated(self, node: Node) -> Any:
        if node.op in ("const", "table"):
            return node.attrs["value"]
        if node.op == "size":
            return concrete(node.attrs["size"], self.lengths)
        values = [self._values[id(a)][1] for a in node.args]
        with np.errstate(all="ignore"):
            return evaluated(node, values, self.lengths)

    def difference(self, old: Node, new: Node) -> float:
        floor = max((largest(self.value(each)) for each in made_of(old)), default=0.0)
        return difference(self.value(old), self.value(new), floor)


def twin(
    world: World, inputs: Sequence[Node], nodes: Iterable[Node], stated: Sequence[Assumption]
) -> Twin | None:
    """Values at other sizes at which all nodes can be evaluated; None where there are none."""
    letters = {letter for node in inputs for size in node.shape for letter in size.letters}
    roots = list(nodes)
    for more, times in _OTHERS:
        lengths = {
            letter: (length + more) * times if letter in letters else length
            for letter, length in world.lengths.items()
        }
        found = Twin(lengths)
        try:
            for node in inputs:
                found._values[id(node)] = (node, _drawn(node, lengths, stated))
            for each in world.masks.values():
                found.lengths[each.letter] = each.number(found.value(each.node))
            for node in roots:
                found.value(node)
        except (
            ValueError,
            IndexError,
            KeyError,
            TypeError,
            ArithmeticError,
            np.linalg.LinAlgError,
        ):
            continue
        return found
    return None


def _drawn(node: Node, lengths: dict[str, int], stated: Sequence[Assumption]) -> Any:
    """An input of other sizes, of elements that the example has, so that it stays in the domain."""
    own = np.asarray(node.value)
    rng = np.random.default_rng(own.size + 11)
    shape = concrete(node.shape, lengths)
    if own.size == 0:
        return np.zeros(shape, own.dtype)
    drawn = rng.choice(own.ravel(), shape)
    if node.kind == "f":
        drawn = drawn * rng.uniform(0.9, 1.1, shape)
        for each in stated:
            if each.name == node.name and drawn.ndim:
                drawn = each.true_of(drawn)
    return drawn


def made_of(node: Node) -> list[Node]:
    """The arrays that a node is made of: where they cancel, its rounding is that of theirs."""
    found = [*node.args, *(inner for each in node.args for inner in each.args)]
    return [each for each in found if each.op != "loop"]


def largest(value: Any) -> float:
    """The largest finite element of a value, or of its parts, by size."""
    if isinstance(value, tuple):
        return max(map(largest, value), default=0.0)
    array = np.abs(_numbers(value))
    return float(np.max(array[np.isfinite(array)], initial=0.0))


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    """A value as floats, or as complex numbers where it is of them."""
    array = np.asarray(value)
    return array if array.dtype.kind == "c" else array.astype(float)


def difference(old: Any, new: Any, floor: float = 0.0) -> float:
    """The largest difference of two values as a share of the largest, or of `floor` where that is
    more; infinite where the shapes differ.
    """
    if isinstance(old, tuple) or isinstance(new, tuple):
        return 0.0
    one, two = _numbers(old), _numbers(new)
    if one.shape != two.shape:
        return float("inf")
    with np.errstate(all="ignore"):
        finite = np.isfinite(one)
        scale = max(largest(one), floor) or 1.0
        off = np.where(finite, np.abs(one - two), 0.0)
    worst = float(np.max(off, initial=0.0)) / scale
    return worst if np.isfinite(worst) else float("inf")
