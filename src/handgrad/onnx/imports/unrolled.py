"""RNNs whose steps stand in a file one by one, as one operator again.

PyTorch's newer exporter writes an RNN as the product x W + b of all steps, and for each step a
slice of it, to which the product with the state before is added, and an activation. Here these
nodes become the operator RNN of the standard, which other readers know. What is no such RNN in
every detail stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from handgrad.arrays import Array
from handgrad.onnx.imports.graph import UNFIT, ReadGraph, attributes, axes_of

_ACTIVATIONS: Final = ("Tanh", "Relu")


class _Product(NamedTuple):
    """x W + b, of constants W and b with their names, and the nodes that compute it."""

    x: str
    weight: Array
    bias: Array | None
    names: tuple[str, str]
    nodes: list[onnx.NodeProto]


class _Direction(NamedTuple):
    """A layer in one direction: its states in running order, and the value of all its steps."""

    inner: _Product
    recurrent: _Product
    reverse: bool
    activation: str
    states: list[str]
    steps: str | None
    nodes: list[onnx.NodeProto]


class _Layer(NamedTuple):
    """Both directions of a layer, or the only one; the value of its steps, and its last state."""

    directions: list[_Direction]
    steps: str | None
    state: str
    nodes: list[onnx.NodeProto]


def with_whole_rnns(g: ReadGraph) -> ReadGraph:
    """The graph with one operator for every RNN in steps; the same one where there is none.

    So is one that is damaged, for which the chain of layers has the sentences.
    """
    try:
        return _rewritten(g)
    except UNFIT:
        return g


def _rewritten(g: ReadGraph) -> ReadGraph:
    by_source: dict[str, list[_Direction]] = {}
    for node in g.proto.node:
        found = _direction(g, node.output[0])
        if found is not None:
            by_source.setdefault(found.inner.x, []).append(found)
    whole = [layer for layer in (_layer(g, each) for each in by_source.values()) if layer]
    if not whole:
        return g
    proto = onnx.GraphProto()
    proto.CopyFrom(g.proto)
    del proto.node[:]
    ends = {each.states[-1] for layer in whole for each in layer.directions}
    again = _given_again(g, ends)
    gone = {id(node) for layer in whole for node in layer.nodes}
    gone |= {id(node) for _, nodes in again.values() for node in nodes}
    both = {
        tuple(each.states[-1] for each in layer.directions): layer.state
        for layer in whole
        if len(layer.directions) == 2
    }
    for node in g.proto.node:
        if id(node) not in gone:
            kept = proto.node.add()
            kept.CopyFrom(node)
            inputs = [again[name][0] if name in again else name for name in node.input]
            kept.input[:] = _paired(inputs, both)
    for layer in whole:
        _write(g, proto, layer)
    return ReadGraph(g.path, proto)


def _direction(g: ReadGraph, value: str) -> _Direction | None:
    """The direction of which this value has what is sliced by steps; None where it has not."""
    slices = {_slice(g, node): node for node in g.readers(value)}
    # A file that reads some of the steps alone is no RNN over all of them.
    steps = len(g.readers(value))
    wanted = [(t, t + 1, 1) for t in range(steps)]
    if steps < 2 or slices.keys() != set(wanted) or (g.declared(value) or [None])[0] != steps:
        return None
    writer = g.writer(value)
    turned = [] if writer is None or _slice(g, writer) != (-1, None, -1) else [writer]
    inner = _product(g, turned[0].input[0] if turned else value)
    if inner is None:
        return None
    nodes, states, added, kinds = [*inner.nodes, *turned], list[str](), list[str](), set[str]()
    for each in wanted:
        chain = _following(g, slices[each], (("Squeeze",), ("Add",), _ACTIVATIONS))
        if chain is None or axes_of(g, chain[0]) != [0]:
            return None
        taken, summed, active = chain
        (other,) = (name for name in summed.input if name != taken.output[0])
        added.append(other)
        nodes += [slices[each], *chain]
        states.append(str(active.output[0]))
        kinds.add(active.op_type)
    products = [_product(g, name) for name in added]
    recurrent = products[1]
    if recurrent is None or len(kinds) != 1:
        return None
    for before, product in zip(states, products[1:], strict=False):
        if product is None or product.x != before or product.names != recurrent.names:
            return None
        nodes += product.nodes
    first = products[0]
    if first is not None and first.names == recurrent.names and g.is_zero(first.x):
        nodes += first.nodes
    elif not _is_everywhere(g.constant(added[0]), recurrent.bias):
        return None
    joined = _joined(g, states[::-1] if turned else states, 0)
    found = _Direction(
        *(inner, recurrent, bool(turned), kinds.pop(), states),
        None if joined is None else joined.output[0],
        nodes if joined is None else [*nodes, joined],
    )
    return found if _is_apart(g, found) else None


def _is_apart(g: ReadGraph, found: _Direction) -> bool:
    """Return whether no other node reads what stands within the nodes of a direction."""
    inside = {id(node) for node in found.nodes}
    given = (found.states[-1], found.steps)
    return all(
        id(reader) in inside
        for node in found.nodes
        if node.output[0] not in given
        for reader in g.readers(node.output[0])
    )


def _layer(g: ReadGraph, found: Sequence[_Direction]) -> _Layer | None:
    """The layer of all directions that read one value; None where they are no layer."""
    directions = sorted(found, key=lambda each: each.reverse)
    nodes = [node for each in directions for node in each.nodes]
    first = directions[0]
    if [each.reverse for each in directions] == [False]:
        return _Layer(directions, first.steps, first.states[-1], nodes)
    alike = {(each.activation, each.recurrent.weight.shape) for each in directions}
    if [each.reverse for each in directions] != [False, True] or len(alike) != 1:
        return None
    halves = [each.steps for each in directions]
    joined = None if None in halves else _joined(g, halves, 2)
    if any(g.readers(half) != [joined] for half in halves if half and g.readers(half)):
        return None
    steps = None if joined is None else joined.output[0]
    nodes += [] if joined is None else [joined]
    return _Layer(directions, steps, f"states of {first.states[-1]}", nodes)


def _write(g: ReadGraph, proto: onnx.GraphProto, layer: _Layer) -> None:
    """Add the operator of a layer, and the nodes that give its steps as they were."""
    name = f"RNN of {layer.directions[0].states[-1]}"
    count = len(layer.directions)
    biases = [(each.inner.bias, each.recurrent.bias) for each in layer.directions]
    sizes = [len(each.recurrent.weight) for each in layer.directions]
    arrays = {
        "W": np.stack([each.inner.weight.T for each in layer.directions]),
        "R": np.stack([each.recurrent.weight.T for each in layer.directions]),
    }
    if any(bias is not None for both in biases for bias in both):
        dtype = arrays["W"].dtype
        zeros = [np.zeros(size, dtype) for size in sizes]
        rows = [
            np.concatenate([zero if bias is None else bias for bias in both])
            for zero, both in zip(zeros, biases, strict=True)
        ]
        arrays["B"] = np.stack(rows)
    for key, array in arrays.items():
        proto.initializer.append(numpy_helper.from_array(array, f"{name}, {key}"))
    source = layer.directions[0].inner.x
    stacked = f"{name}, steps"
    nodes = [
        helper.make_node(
            "RNN",
            [source, *(f"{name}, {key}" for key in arrays)],
            [stacked, layer.state],
            name,
            hidden_size=sizes[0],
            direction="bidirectional" if count == 2 else "forward",
            activations=[each.activation for each in layer.directions],
        )
    ]
    if layer.steps is not None and (g.readers(layer.steps) or layer.steps in g.outputs):
        if count == 1:
            nodes.append(helper.make_node("Squeeze", [stacked], [layer.steps], axes=[1]))
        else:
            rows = numpy_helper.from_array(np.array([0, 0, -1]), f"{name}, shape")
            proto.initializer.append(rows)
            by_step = f"{name}, by step"
            nodes += [
                helper.make_node("Transpose", [stacked], [by_step], perm=[0, 2, 1, 3]),
                helper.make_node("Reshape", [by_step, rows.name], [layer.steps]),
            ]
    proto.node.extend(nodes)


def _product(g: ReadGraph, value: str) -> _Product | None:
    """The product that gives a value, with what is added to it; None for another value."""
    node, nodes, bias, name = g.writer(value), list[onnx.NodeProto](), None, ""
    if node is not None and node.op_type == "Add":
        product, name = sorted(node.input, key=lambda each: g.constant(each) is not None)
        bias = g.constant(name)
        if bias is None or bias.ndim != 1:
            return None
        nodes, node = [node], g.writer(product)
    if node is None or node.op_type != "MatMul":
        return None
    weight = g.constant(node.input[1])
    if weight is None or weight.ndim != 2:
        return None
    return _Product(node.input[0], weight, bias, (node.input[1], name), [*nodes, node])


def _is_everywhere(array: Array | None, bias: Array | None) -> bool:
    """Return whether each row is the bias, as the product with a state of 0 leaves it."""
    if array is None:
        return False
    return bool(np.all(array == (0.0 if bias is None else bias)))


def _slice(g: ReadGraph, node: onnx.NodeProto) -> tuple[int, int | None, int] | None:
    """Start, end and step of a Slice along the first axis; the end None where it is the array's."""
    if node.op_type != "Slice":
        return None
    given = [g.constant(name) for name in node.input[1:]]
    numbers = [int(each.item()) for each in given if each is not None and each.size == 1]
    if len(numbers) != len(given) or len(numbers) not in (3, 4) or numbers[2] != 0:
        return None
    step = numbers[3] if len(numbers) == 4 else 1
    return numbers[0], None if abs(numbers[1]) >= 2**31 - 1 else numbers[1], step


def _following(
    g: ReadGraph, node: onnx.NodeProto, kinds: Sequence[Sequence[str]]
) -> list[onnx.NodeProto] | None:
    """The nodes of these kinds behind one another, each the only reader of the one before."""
    found = []
    for kind in kinds:
        readers = g.readers(node.output[0])
        if len(readers) != 1 or readers[0].op_type not in kind:
            return None
        node = readers[0]
        found.append(node)
    return found


def _joined(g: ReadGraph, values: Sequence[str | None], axis: int) -> onnx.NodeProto | None:
    """The Concat of just these values along an axis."""
    readers = g.readers(values[0] or "")
    return next(
        (
            node
            for node in readers
            if node.op_type == "Concat"
            and list(node.input) == list(values)
            and attributes(node).get("axis") == axis
        ),
        None,
    )


def _given_again(g: ReadGraph, ends: set[str]) -> dict[str, tuple[str, tuple[onnx.NodeProto, ...]]]:
    """Last states (1, N, H) that an Unsqueeze behind a Squeeze gives once more, with both nodes."""
    found = {}
    for node in g.proto.node:
        inner = g.writer(node.input[0]) if node.op_type == "Unsqueeze" else None
        if inner is None or inner.op_type != "Squeeze" or inner.input[0] not in ends:
            continue
        if axes_of(g, node) == axes_of(g, inner) == [0]:
            alone = len(g.readers(inner.output[0])) == 1
            found[node.output[0]] = (inner.input[0], (node, inner) if alone else (node,))
    return found


def _paired(inputs: list[str], both: Mapping[tuple[str, ...], str]) -> list[str]:
    """The inputs of a node with the states of a layer for those of its two directions."""
    found: list[str] = []
    for name in inputs:
        found.append(name)
        if tuple(found[-2:]) in both:
            found[-2:] = [both[tuple(found[-2:])]]
    return found
