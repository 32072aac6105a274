"""A model as a graph: which value each layer takes, which it gives, and where gradients add up.

Every layer that computes something, and every sum of a Residual, is a node. Nodes are numbered in
the order in which forward runs them, and node i gives the value h_i; h_0 is the input. A value that
several nodes take forks, and its gradient is the sum of what comes back from each of them.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from handgrad.documents.formulas.formula import Formula
from handgrad.errors import ArgumentError
from handgrad.layers import Embedding, Layer, Residual, Sequential

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """Takes the values `inputs` and gives h_`number`; `shape` is that of one example.

    The sum at the end of a Residual has two inputs, and the Residual itself as its `layer`. A part
    of a layer may take values of another column too, which are `aside`.
    """

    number: int
    name: str
    layer: Layer
    inputs: tuple[int, ...]
    shape: Shape
    aside: tuple[int, ...] = ()

    @property
    def is_sum(self) -> bool:
        return len(self.inputs) > 1


@dataclass(frozen=True)
class Fork:
    """A value that goes two ways, through `inner` and through `skip`, which meet in the sum `join`.

    A way without parts is the value itself.
    """

    start: int
    inner: Parts
    skip: Parts
    join: Node


@dataclass(frozen=True)
class Group:
    """Parts in a frame with a title, which stand for `times` alike ones.

    Outside, `taken` goes in and `number` comes out; inside, these are `start` and `end`.
    """

    title: Formula
    times: int
    taken: int
    number: int
    start: int
    end: int
    parts: Parts


Parts: TypeAlias = tuple[Node | Fork | Group, ...]


@dataclass(frozen=True)
class Flow:
    """`input_shape` is that of one example, or a tuple of those of several inputs."""

    input_shape: Any
    parts: Parts

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        several = bool(self.input_shape) and isinstance(self.input_shape[0], tuple)
        return self.input_shape if several else (self.input_shape,)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node in the order of forward."""
        return tuple(nodes_of(self.parts))

    @property
    def forks(self) -> tuple[Fork, ...]:
        return tuple(part for part in _unframed(self.parts) if isinstance(part, Fork))

    @property
    def output(self) -> int:
        return len(self.nodes)

    def shape(self, value: int) -> Any:
        """The shape of h_value for one example."""
        return self.nodes[value - 1].shape if value else self.input_shape

    def uses(self, value: int) -> tuple[Node, ...]:
        """The nodes that take the value, in order; a sum of the value with itself, twice."""
        return tuple(node for node in self.nodes for each in node.inputs if each == value)

    @property
    def needed(self) -> frozenset[int]:
        """The values whose gradient training computes: those that a parameter has gone into."""
        found: set[int] = set()
        for node in self.nodes:
            trained = not node.is_sum and bool(node.layer.parameters)
            if trained or found.intersection(node.inputs):
                found.add(node.number)
        return frozenset(found)


def flow_of(model: Layer, input_shape: Shape) -> Flow:
    """The graph of a model for examples of this shape.

    A Sequential and a Residual are opened; any other layer is a node. Raises ShapeError where a
    layer cannot take what comes before it, ArgumentError where one does not tell its output's
    shape, or where there is none.
    """
    reader = _Reader()
    parts, _, _ = reader.parts(model, "", 0, input_shape)
    if not parts:
        raise ArgumentError("notes: the model has no layers; allowed: one layer or more")
    return Flow(input_shape, parts)


def flow_of_inputs(model: Layer, inputs: tuple[Any, ...]) -> Flow:
    """The graph of a model that takes several inputs, such as sources and targets: one node.

    Lengths and other arrays of one axis have no shape of their own, nor has the state of a
    recurrent layer, which is not an example's.
    """
    names = inspect.signature(model.forward).parameters
    arrays = [each for name, each in zip(names, inputs, strict=False) if name != "state"]
    y, _ = copy.deepcopy(model).forward_y(*inputs)
    shapes = tuple(tuple(each.shape[1:]) for each in arrays if np.ndim(each) > 1)
    node = Node(1, "", model, (0,), tuple(y.shape[1:]))
    return Flow(shapes[0] if len(shapes) == 1 else shapes, (node,))


def first_layer(model: Layer) -> Layer:
    """The layer that the input goes into, within Sequential and Residual."""
    first = model
    while isinstance(first, Sequential | Residual) and first.layers:
        first = next(iter(first.layers.values()))
    return first


def example_shape(model: Layer) -> Shape | None:
    """The shape of one example, where the first layer fixes it."""
    first = first_layer(model)
    if isinstance(first, Embedding):
        return ()
    features = getattr(first, "in_features", getattr(first, "features", None))
    return (features,) if isinstance(features, int) else None


def nodes_of(parts: Parts) -> Iterator[Node]:
    """Every node, in forks and frames too, in the order of forward."""
    return (part.join if isinstance(part, Fork) else part for part in _unframed(parts))


def _unframed(parts: Parts) -> Iterator[Node | Fork]:
    """Nodes and forks in the order of forward, a fork behind what is in it."""
    for part in parts:
        if isinstance(part, Group):
            yield from _unframed(part.parts)
        else:
            if isinstance(part, Fork):
                yield from _unframed(part.inner + part.skip)
            yield part


Read: TypeAlias = tuple[Parts, int, Shape]  # the parts, and the value they give with its shape


class _Reader:
    """Numbers the nodes as it meets them."""

    def __init__(self) -> None:
        self.count = 0

    def parts(self, layer: Layer, name: str, value: int, shape: Shape) -> Read:
        """The parts of a layer that takes h_value."""
        if type(layer).forward is Sequential.forward:
            found: Parts = ()
            for child_name, child in layer.layers.items():
                more, value, shape = self.parts(child, _joined(name, child_name), value, shape)
                found += more
            return found, value, shape
        if type(layer).forward is Residual.forward:
            return self.fork(layer, name, value, shape)
        return self.node(name, layer, (value,), _output_shape(layer, name, shape))

    def fork(self, layer: Layer, name: str, value: int, shape: Shape) -> Read:
        output = _output_shape(layer, name, shape)
        ways = {
            child_name: self.parts(child, _joined(name, child_name), value, shape)
            for child_name, child in layer.layers.items()
        }
        inner, inner_value, _ = ways["inner"]
        skip, skip_value, _ = ways.get("projection", ((), value, shape))
        (join,), number, _ = self.node(name, layer, (skip_value, inner_value), output)
        assert isinstance(join, Node)
        return (Fork(value, inner, skip, join),), number, output

    def node(self, name: str, layer: Layer, inputs: tuple[int, ...], shape: Shape) -> Read:
        self.count += 1
        return (Node(self.count, name, layer, inputs, shape),), self.count, shape


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child


def _output_shape(layer: Layer, name: str, shape: Shape) -> Shape:
    try:
        return layer.output_shape(shape)
    except NotImplementedError:
        kind = type(layer).__name__
        raise ArgumentError(
            f"notes: layer {name or kind} does not tell its output's shape; allowed: a layer with "
            f"{kind}.output_shape"
        ) from None
