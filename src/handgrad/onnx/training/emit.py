"""A program as nodes of an ONNX graph, primitive by primitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from onnx import helper

from handgrad.errors import ArgumentError
from handgrad.onnx.graph import Graph, Value
from handgrad.program.node import FIXED, Node, Program

DOUBLE: Final = np.dtype(np.float64)
INTEGER: Final = np.dtype(np.int64)
TRUTH: Final = np.dtype(np.bool_)
#: The value of a node, whose operands are there already.
Rule: TypeAlias = Callable[["GraphEmitter", Node], Value]
#: Arrays of one value with more elements are made when the graph runs.
_SMALL: Final = 16


class GraphEmitter:
    """Values of the graph by node, each with its type.

    A number that only the step's number and constants decide is computed in float64, whatever the
    type of the model: 1 − 0.999ᵗ has no more than three digits in float32.
    """

    def __init__(self, graph: Graph, rules: Mapping[str, Rule]) -> None:
        self.graph = graph
        self.rules = rules
        self._values: dict[int, tuple[Value, np.dtype[Any]]] = {}
        self._fixed: dict[int, bool] = {}
        self._cast: dict[tuple[Value, np.dtype[Any]], Value] = {}

    def given(self, node: Node, name: Value, dtype: np.dtype[Any]) -> None:
        """Say which input of the graph a node is."""
        self._values[id(node)] = name, dtype

    def emit(self, program: Program) -> list[Value]:
        """The outputs as values in the type that their kind has here."""
        for node in program.body:
            if self.is_fixed(node) or id(node) in self._values:
                continue
            if node.op not in self.rules:
                raise ArgumentError(
                    f"export_training: the step has the function {node.op}; allowed: "
                    f"{', '.join(sorted(self.rules))}"
                )
            self._values[id(node)] = self.rules[node.op](self, node), self.dtype(node)
        return [self.value(node, self.of_kind(node.kind)) for node in program.outputs]

    def is_fixed(self, node: Node) -> bool:
        """Return whether no input has a say in a node's value."""
        if id(node) not in self._fixed:
            made = node.op != "input" and id(node) not in self._values
            self._fixed[id(node)] = node.op in FIXED or (
                made and all(map(self.is_fixed, node.args))
            )
        return self._fixed[id(node)]

    def of_kind(self, kind: str) -> np.dtype[Any]:
        """The type of values of a kind."""
        return {"f": self.graph.dtype, "i": INTEGER, "b": TRUTH}[kind]

    def dtype(self, node: Node) -> np.dtype[Any]:
        """The type that a node is computed in."""
        if id(node) in self._values:
            return self._values[id(node)][1]
        open_ = [a for a in node.args if not self.is_fixed(a)]
        is_number = node.kind == "f" and not node.ndim and not any(a.ndim for a in open_)
        if is_number and all(self.dtype(a) in (DOUBLE, INTEGER) for a in open_):
            return DOUBLE
        return self.of_kind(node.kind)

    def common(self, nodes: Sequence[Node]) -> np.dtype[Any]:
        """The type in which nodes are compared."""
        kind = max((node.kind for node in nodes), key="bif".index)
        open_ = [self.dtype(node) for node in nodes if not self.is_fixed(node)]
        return DOUBLE if kind == "f" and all(d == DOUBLE for d in open_) else self.of_kind(kind)

    def value(self, node: Node, dtype: np.dtype[Any] | None = None) -> Value:
        """A node in a type: a constant, or what was computed, converted if need be."""
        if self.is_fixed(node):
            return self._constant(np.asarray(node.value), dtype or self.of_kind(node.kind))
        value, own = self._values[id(node)]
        if dtype is None or dtype == own:
            return value
        if (value, dtype) not in self._cast:
            self._cast[value, dtype] = self.graph.op("Cast", value, to=number(dtype))
        return self._cast[value, dtype]

    def _constant(self, array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Value:
        g, array = self.graph, array.astype(dtype)
        if array.size > _SMALL and np.all(array == array.flat[0]):
            return g.op("Expand", g.constant(array.reshape(-1)[0]), g.ints(*array.shape))
        return g.constant(array)


def number(dtype: np.dtype[Any]) -> int:
    """The standard's number of a type."""
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def lengths(node: Node) -> tuple[int, ...]:
    """The shape of a node in numbers."""
    return tuple(np.shape(node.value))
