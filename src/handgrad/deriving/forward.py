"""A forward as arrays: each a sum of products of earlier ones, or made by a function of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.deriving.arrays import Array, Graph, free
from handgrad.deriving.source import Source, refuse
from handgrad.deriving.terms import (
    Sum,
    of,
    renamed,
)
from handgrad.program.nodes import Node, Program, reachable

#: Operations that arrange values; a name for one of them is no array of its own.
_REARRANGE: Final = frozenset(
    {
        *("expand_dims", "squeeze", "broadcast_to", "asarray", "astype", "positive", "copy"),
        *("permute_dims", "matrix_transpose", "swapaxes", "moveaxis", "real", "ascontiguousarray"),
    }
)

#: Reductions, which are along an axis.
_ALONG: Final = frozenset({"sum", "mean", "max", "min"})
_WORDS: Final = {"add": "plus", "subtract": "minus", "multiply": "times", "divide": "over"}


@dataclass
class Reader:
    """Makes the arrays of a forward from its run at two sets of sizes."""

    graph: Graph
    source: Source
    #: Every node as a sum over the indices of its own axes.
    sums: dict[Node, Sum] = field(default_factory=dict)
    active: set[Node] = field(default_factory=set)

    @property
    def twins(self) -> Any:
        return self.source.twins

    def read(self, program: Program, outputs: Sequence[Node], wanted: Iterable[Node]) -> None:
        """All nodes that the outputs are made of, in order; `wanted` have gradients."""
        needed = reachable(tuple(outputs))
        self.active = set(wanted)
        users = program.users
        for node in program.nodes:
            if node not in needed:
                continue
            depends = node.op != "input" and not self.active.isdisjoint(node.operands)
            if depends and np.asarray(node.value).dtype.kind == "f":
                self.active.add(node)
            several = len([each for each in users.get(node, ()) if each in needed]) > 1
            self._read(node, keep=node in outputs or (several and node.op not in _REARRANGE))

    def axes(self, node: Node) -> tuple[str | None, ...]:
        """The dimension of each axis of a node."""
        found = []
        for first, second in zip(shape_of(node), shape_of(self.twins[node]), strict=True):
            letter = self.graph.sizes.letter(first, second)
            if letter == "":
                raise refuse(node, f"an axis has length {first}, in a way that is not known")
            found.append(letter)
        return tuple(found)

    def _read(self, node: Node, *, keep: bool) -> None:
        if node.op == "input":
            self.atom(node, node.name)
            return
        if not node.operands and shape_of(node) == ():
            self.sums[node] = self.graph.sizes.number(
                np.asarray(node.value).item(), np.asarray(self.twins[node].value).item()
            ) or self._unknown(node)
            return
        rule = RULES.get(node.op)
        found = rule(self, node) if rule is not None else None
        if found is None:
            # What has no gradient is written within what reads it, unless the source names it.
            if keep or node.name or node in self.active:
                self.atom(node, node.name or _name(node))
            return
        self.sums[node] = found
        if keep or (node.name and not self._is_alias(node, found)):
            self.atom(node, node.name or _name(node), found)

    def _unknown(self, node: Node) -> Sum:
        raise refuse(node, f"{node.value!r} depends on the sizes in a way that is not known")

    def _is_alias(self, node: Node, found: Sum) -> bool:
        """Return whether the node is another array with its axes arranged, or a constant."""
        if not any(each.factors for each in found):
            return True
        if len(found) != 1:
            return False
        ((factors, bound), coefficient) = next(iter(found.items()))
        is_whole = coefficient == 1 and not bound and len(factors) == 1 and factors[0].power == 1
        return is_whole and node.op in (*_REARRANGE, "getitem", "reshape")

    def atom(self, node: Node, name: str, definition: Sum | None = None) -> Array:
        """An array of its own for a node."""
        reads = tuple(self.array_of(each) for each in node.operands) if definition is None else ()
        name = self.graph.unique(name if name.isidentifier() else _identifier(name))
        self.source.names[node] = name
        axes = self.axes(node)
        array = Array(name, axes, definition, "", reads, node, is_active=node in self.active)
        self.graph.add(array, node.value, self.twins[node].value)
        kind = np.asarray(node.value).dtype.kind
        self.sums[node] = of(f"[{name}]" if kind == "b" else name, array.indices)
        return array

    def sum_of(self, node: Node) -> Sum:
        """A node over its own indices: as a sum of products, or as the array that it is."""
        if node not in self.sums:
            self.atom(node, node.name or _name(node))
        return self.sums[node]

    def array_of(self, node: Node) -> str:
        """The array that a node is, which is made where it is part of a sum so far."""
        if node not in self.source.names:
            self.atom(node, node.name or _name(node), self.sums.get(node))
        return self.source.names[node]

    # What rules are made of

    def step(self, name: str, axes: tuple[str | None, ...], sum_: Sum, code: str) -> Array:
        """An array that a function computes within itself."""
        array = Array(self.graph.unique(name), axes, sum_, code)
        array.reads = tuple(self.graph.reads(array))
        return self.graph.add(array)

    def operand(self, node: Node, value: Any, other: Any, axes: Sequence[str | None]) -> Sum | None:
        """An operand over the indices of axes that it broadcasts to."""
        layout = free(tuple(axes))
        if isinstance(value, Node):
            own = free(self.axes(value))
            if len(own) > len(layout):
                return None
            pairs = zip(own, layout[len(layout) - len(own) :], strict=True)
            return renamed(self.sum_of(value), {i: j for i, j in pairs if i and j})
        return self.number(node, value, other)

    def number(self, node: Node, value: Any, other: Any) -> Sum | None:
        """A number: a setting by its name, a product of sizes, or a constant."""
        if isinstance(value, np.generic):
            value, other = value.item(), np.asarray(other).item()
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if (setting := self.source.setting(node, value)) is not None:
            return of(setting)
        if not np.isfinite(value):
            return None
        found = self.graph.sizes.number(value, other)
        if found is None:
            raise refuse(node, f"{value!r} depends on the sizes in a way that is not known")
        return found

    def pair(self, node: Node) -> tuple[Sum, Sum] | None:
        """Both operands of an element-wise operation over the indices of its result."""
        twin, axes = self.twins[node], self.axes(node)
        if len(node.args) != 2:
            return None
        first = self.operand(node, node.args[0], twin.args[0], axes)
        second = self.operand(node, node.args[1], twin.args[1], axes)
        return None if first is None or second is None else (first, second)

    def single(self, node: Node, value: Any, axes: Sequence[str | None]) -> Sum:
        """An operand as one array, over the indices of axes that it broadcasts to."""
        self.array_of(value)
        found = self.operand(node, value, value, axes)
        assert found is not None
        return found


Rule = Callable[[Reader, Node], "Sum | None"]
RULES: Final[dict[str, Rule]] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Register the sum that operations are."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, function))
        return function

    return register


def shape_of(node: Node) -> tuple[int, ...]:
    return tuple(np.shape(node.value))


def _identifier(name: str) -> str:
    found = "".join(each if each.isalnum() else "_" for each in name).strip("_")
    return found if found.isidentifier() else f"a{found}"


def _name(node: Node) -> str:
    """A name for what the source does not name: sum_e, x_minus_m, or t where that gets long."""
    operands = [each.name for each in node.operands]
    known = all(each.isidentifier() and "_" not in each for each in operands)
    if known and len(operands) == 1 and len(node.args) == 1 + (node.op in _ALONG):
        return f"{node.op}_{operands[0]}"
    if known and len(operands) == 2 and node.op in _WORDS:
        return f"{operands[0]}_{_WORDS[node.op]}_{operands[1]}"
    return "t"
