"""The elements of an array, opened into those of the arrays that have symbols.

The functions of a run are called again on arrays of elements, from what has a symbol to the next
that has one. A function that decides by its numbers is not opened: what it gives is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from handgrad.documents.story import Tree
from handgrad.equations.alive.entries import (
    REPLACED,
    Element,
    Entries,
    TracedNumber,
    entries,
    leaf,
    value_of,
)
from handgrad.program import Node
from handgrad.program.functions import is_array

#: Operations that give what they are given, in another precision.
_SAME: Final = frozenset({"astype", "float", "contiguous", "copy", "detach", "require"})
#: How far a number may be from the one that is shown, of the precision that it was computed in.
_ROUNDING: Final = 64


class Opener:
    """Opens the values of nodes down to `known` ones, which have a number."""

    def __init__(self, known: Mapping[Node, int]) -> None:
        self.known = known
        #: False once a number was met that no element leads to, though it hangs on some.
        self.is_whole = True
        #: The rounding of the coarsest numbers that were met.
        self._eps = float(np.finfo(np.float64).eps)
        self._found: dict[Node, Any] = {}

    def opened(self, node: Node, *, as_it_is: bool = False) -> list[Element] | None:
        """The elements of an array in order; None where they are not what the run computed.

        With `as_it_is` those of an array that is known, and not what it is made of.
        """
        try:
            with np.errstate(all="ignore"):
                as_it_is |= node in self.known and not node.operands
                computed = self._operand(node) if as_it_is else self._computed(node)
            found = np.asarray(computed, dtype=object)
        except Exception:  # a function that takes no elements
            return self._none()
        if found.shape != np.shape(node.value):
            return self._none()
        elements = found.ravel().tolist()
        values = np.array([value_of(each) for each in elements]).reshape(found.shape)
        if not _agree(values, np.asarray(node.value), _ROUNDING * self._eps):
            return self._none()
        return elements

    def _none(self) -> list[Element] | None:
        self.is_whole = False
        return None

    def _computed(self, node: Node) -> Any:
        if node.op == "element":
            whole, position = node.args
            return self._operand(whole)[position]
        if node.function is None or not node.operands:
            self.is_whole &= not node.operands
            return np.asarray(node.value)
        args, kwargs = node.called_with(self._operand)
        arrays = [each for each in args if isinstance(each, np.ndarray)]
        if node.op in _SAME and arrays:
            return arrays[0]
        if node.op in REPLACED and len(arrays) == REPLACED[node.op].nin == len(args):
            return entries(REPLACED[node.op](*(each.view(np.ndarray) for each in arrays)))
        found = entries(node.function(*args, **kwargs))
        if isinstance(node.value, tuple | list) or _is_opened(found):
            return found
        if any(map(_is_opened, arrays)):
            self.is_whole = False
        return found

    def _operand(self, node: Node) -> Any:
        """What stands for an operand: leaves, elements of leaves, or a number as it is."""
        if node not in self._found:
            self._found[node] = self._found_for(node)
        return self._found[node]

    def _found_for(self, node: Node) -> Any:
        value = node.value
        if node in self.known and is_array(value):
            array = np.asarray(value)
            if array.dtype.kind == "f":
                self._eps = max(self._eps, float(np.finfo(array.dtype).eps))
            number = self.known[node]
            elements = np.empty(array.size, dtype=object)
            for i, each in enumerate(array.ravel().tolist()):
                elements[i] = leaf(number, i, float(each))
            return elements.reshape(array.shape).view(Entries)
        if not (is_array(value) or isinstance(value, tuple | list)):
            return value
        try:
            return self._computed(node)
        except Exception:  # as above: its numbers stand for it
            self.is_whole = False
            return value


def _is_opened(found: Any) -> bool:
    return isinstance(found, np.ndarray) and found.dtype == object


def _agree(values: Any, shown: Any, near: float) -> bool:
    scale = float(np.max(abs(shown[np.isfinite(shown)]), initial=1.0))
    return bool(np.allclose(values, shown, rtol=near, atol=near * scale, equal_nan=True))


def written(elements: list[Element]) -> tuple[tuple[Tree, ...], tuple[tuple[int, ...], ...]]:
    """The trees of elements, each once, and for each element its tree and the leaves' indices."""
    trees: dict[str, int] = {}
    kept: list[Tree] = []
    found: list[tuple[int, ...]] = []
    for each in elements:
        indices: list[int] = []
        tree = _tree(each, indices)
        key = repr(tree)
        if key not in trees:
            trees[key] = len(kept)
            kept.append(tree)
        found.append((trees[key], *indices))
    return tuple(kept), tuple(found)


def _tree(element: Any, indices: list[int]) -> Tree:
    if not isinstance(element, TracedNumber):
        return [float(element)]
    if not element.op:
        array, index = element.args
        indices.append(index)
        return array
    return [element.op, *(_tree(each, indices) for each in element.args)]


def leaves_of(tree: Tree) -> Iterator[int]:
    """The arrays whose elements are the leaves of a tree, in order."""
    if isinstance(tree, int):
        yield tree
    elif len(tree) > 1:
        for each in tree[1:]:
            yield from leaves_of(each)
