"""A chain of nodes, from one value to another, as a `Sequential` of layers.

Values are followed from reader to reader. Two things are kept of the value at hand: whether time
stands before the batch, as recurrent operators take it between two transpositions or, in files of
`batch_first=False`, throughout, and whether it is an operator's own output (T, directions, N, H)
that the next nodes bring into that form.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import onnx

from handgrad import layers
from handgrad.arrays import Array
from handgrad.data.files import Bound
from handgrad.errors import DataError, HandgradError
from handgrad.escaping import cut, quoted
from handgrad.layers.base import Layer
from handgrad.onnx.imports import recurrent
from handgrad.onnx.imports.final_state import final_state, is_read
from handgrad.onnx.imports.graph import UNFIT, ReadGraph, attributes, axes_of
from handgrad.onnx.imports.layers import TABLE, Plan, global_average
from handgrad.ops.activation import ACTIVATIONS

_SWAPPED: Final = [1, 0, 2]
_WHOLE_RNN: Final = (
    "an RNN as one node, which torch.onnx.export writes with dynamo=False; without, it takes one "
    "apart into its steps"
)
#: Operators that act on the features of each step alone, wherever time stands.
_OF_FEATURES: Final = (
    *("Dropout", "Erf", "Gelu", "Identity", "LayerNormalization", "LeakyRelu", "MatMul", "Relu"),
    *("Sigmoid", "Sin", "Softmax", "Tanh"),
)
#: Layers behind which a sequence (N, T, features) is one still.
_OF_STEPS: Final = (
    *recurrent.KINDS.values(),
    *(layers.Activation, layers.Dense, layers.Embedding, layers.LayerNorm),
)
_FUSED: Final = (layers.BatchNorm, layers.Conv1d, layers.Conv2d, layers.Dense)


def sequential(g: ReadGraph, start: str, end: str, time_first: bool) -> layers.Sequential:
    """The layers between two values. Raises DataError, naming the node that is none of them."""
    chain = _Chain(g, start, end, time_first)
    while chain.value != end:
        chain.follow()
    if chain.stacked or (chain.time_first and not time_first):
        raise DataError(
            f"{g.path}: {quoted(end)} has time before the batch; expected (N, T, features)"
        )
    return layers.Sequential(*(_made(g, plan) for plan in _fused(chain.plans)))


def _made(g: ReadGraph, plan: Plan) -> Layer:
    try:
        return plan.layer()
    except (HandgradError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{g.path}: no {plan.kind.__name__} can be made of its constants: "
            f"{cut(str(error), 200)}; expected constants of fitting shapes"
        ) from None


def _fused(plans: list[Plan]) -> list[Plan]:
    """Activations within the layer before, which is faster."""
    found: list[Plan] = []
    for plan in plans:
        before = found[-1] if found else None
        fits = (
            plan.kind is layers.Activation
            and not plan.settings
            and plan.args[0] in ACTIVATIONS
            and before is not None
            and before.kind in _FUSED
            and "activation" not in before.settings
        )
        if fits and before is not None:
            before.settings["activation"] = plan.args[0]
        else:
            found.append(plan)
    return found


class _Chain:
    def __init__(self, g: ReadGraph, start: str, end: str, time_first: bool) -> None:
        self.g = g
        self.value, self.end = start, end
        self.plans: list[Plan] = []
        self.time_first = time_first
        self._declared = g.declared(start)
        self._batch, self._steps = (*self._declared, None, None)[:2][:: -1 if time_first else 1]
        self.stacked = False  # (T, directions, N, H), or (T, N, directions, H) once transposed
        self._seen = {start}
        self._bound = Bound(g.path, g.proto.ByteSize())
        self._bytes = 0

    def follow(self) -> None:
        """Take the next node, or the few that compute one function of the value."""
        nodes, before = self.g.readers(self.value), len(self.plans)
        if len(nodes) > 1:
            self._fork(nodes)
        elif not nodes:
            raise DataError(
                f"{self.g.path}: nothing reads {quoted(self.value)}; expected a chain of nodes "
                "to the output"
            )
        else:
            try:
                self._single(nodes[0])
            except HandgradError:
                raise
            except UNFIT:
                raise self.g.refusal(
                    nodes[0], "inputs and attributes as the standard has"
                ) from None
        if self.value in self._seen:
            raise DataError(f"{self.g.path}: the nodes run in a circle; expected a chain")
        self._seen.add(self.value)
        # Each layer has weights of its own, also where thousands of nodes read one constant.
        for plan in self.plans[before:]:
            self._bytes += sum(array.nbytes for array in plan.arrays.values())
        self._bound.check(self._bytes)

    def _single(self, node: onnx.NodeProto) -> None:
        kind = node.op_type
        if node.domain not in ("", "ai.onnx"):
            raise self.g.refusal(node, "operators of the standard")
        if self.stacked:
            self._unstack(node)
        elif kind in recurrent.KINDS:
            if not self.time_first:
                raise self.g.refusal(
                    node,
                    "a Transpose of batch and time before it, as batch_first=True writes, or "
                    "time_first=True, with which the model takes (N, T, features) in its place",
                )
            layer = recurrent.plan(self.g, node)
            self.plans.append(layer)
            if is_read(self.g, node, self.end):
                last, self.value = final_state(self.g, node, layer)
                self.plans.append(last)
                self.time_first = False
                return
            self.stacked = True
        elif kind == "Transpose" and attributes(node).get("perm") == _SWAPPED:
            self.time_first = not self.time_first
        elif kind == "Add":
            self._bias(node)
        elif kind == "Gather":
            self._gather(node)
        elif kind in ("GlobalAveragePool", "ReduceMax", "ReduceMean"):
            self._pooled(node)
        elif kind in TABLE and node.input[0] == self.value:
            along = attributes(node).get("axis", -1) if kind == "Softmax" else -1
            if self.time_first and (kind not in _OF_FEATURES or along not in (-1, 2)):
                raise self.g.refusal(node, "what acts on each step alone where time stands first")
            plan = TABLE[kind](self.g, node)
            if plan is not None:
                self.plans.append(plan)
        else:
            raise self.g.refusal(node, "what one of handgrad's layers computes")
        self.value = node.output[0]

    def _pooled(self, node: onnx.NodeProto) -> None:
        """The mean or the largest of the steps, or the mean over all positions of an image."""
        over, keeps = axes_of(self.g, node), attributes(node).get("keepdims", 1)
        if self._is_sequence() and node.op_type != "GlobalAveragePool":
            steps = 0 if self.time_first else 1
            if over not in ([steps], [steps - 3]) or keeps:
                raise self.g.refusal(node, "the steps alone, with keepdims 0")
            pooling = {"ReduceMax": "max", "ReduceMean": "mean"}[node.op_type]
            self.plans.append(Plan(layers.StepPooling, (pooling,)))
            self.time_first = False
            return
        # The convolution before it says how many axes the positions have.
        sizes = (plan.args[2] for plan in reversed(self.plans) if "Conv" in plan.kind.__name__)
        axes = len(next(sizes, (0, 0)))
        found = sorted(axis % (axes + 2) for axis in over or ())
        if node.op_type == "ReduceMax" or (
            node.op_type == "ReduceMean" and found != list(range(2, axes + 2))
        ):
            raise self.g.refusal(node, "a mean over all positions, or over the steps of a sequence")
        self.plans.append(global_average(axes))
        if not keeps and node.op_type == "ReduceMean":
            self.plans.append(Plan(layers.Flatten))

    def _is_sequence(self) -> bool:
        """Return whether the value is (N, T, features), or (T, N, features)."""
        kinds = [plan.kind for plan in self.plans]
        axes = len(self._declared) + (layers.Embedding in kinds)
        known = axes == 3 or any(kind in recurrent.KINDS.values() for kind in kinds)
        return known and all(kind in _OF_STEPS for kind in kinds)

    def _unstack(self, node: onnx.NodeProto) -> None:
        """(T, 1, N, H) to (T, N, H) by Squeeze, or both directions side by side."""
        directions = 2 if self.plans[-1].settings["bidirectional"] else 1
        if node.op_type == "Squeeze" and directions == 1 and axes_of(self.g, node) == [1]:
            self.stacked = False
            return
        if node.op_type == "Transpose" and attributes(node).get("perm") == [0, 2, 1, 3]:
            return
        if node.op_type == "Reshape":
            shape = self.g.shape_for(node.input[1], self.value, (3, 5, directions, 7))
            rows = [] if shape is None else shape.tolist()
            width = directions * self.plans[-1].args[1]
            fits = rows[:2] in ([0, 0], [3, 5]) and rows[2:] in ([-1], [7 * directions])
            # One length of the file's own, of the batch or of time, leaves no choice for the other.
            sized = len(rows) == 3 and rows[2] == width and self._is_sized(rows)
            if fits or sized:
                self.stacked = False
                return
        raise self.g.refusal(node, "the outputs of both directions side by side, as PyTorch writes")

    def _is_sized(self, rows: list[int]) -> bool:
        return (rows[0] == self._steps or rows[1] == self._batch) and 0 not in rows

    def _bias(self, node: onnx.NodeProto) -> None:
        """A vector added behind a product."""
        bias = self._other(node)
        before = self.plans[-1] if self.plans else None
        if (
            bias is None
            or bias.ndim != 1
            or before is None
            or before.kind is not layers.Dense
            or before.settings["bias"]
            or len(bias) != before.args[1]
        ):
            raise self.g.refusal(node, "a vector added to what a MatMul gave")
        before.settings["bias"] = True
        before.arrays["bias"] = bias

    def _other(self, node: onnx.NodeProto) -> Array | None:
        """The constant that a node takes beside the value; None where it is none."""
        others = [name for name in node.input if name != self.value]
        return self.g.constant(others[0]) if len(others) == 1 else None

    def _gather(self, node: onnx.NodeProto) -> None:
        """Rows of a table for tokens, or the last step of a sequence."""
        axis = attributes(node).get("axis", 0)
        table, index = (self.g.constant(name) for name in node.input[:2])
        if table is not None and index is None and table.ndim == 2 and axis == 0:
            self.plans.append(Plan(layers.Embedding, table.shape, {}, {"weight": table}))
        elif (
            index is not None
            and index.shape == ()
            and int(index) == -1
            and axis == (0 if self.time_first else 1)
        ):
            self.time_first = False
            self.plans.append(Plan(layers.LastStep))
        else:
            raise self.g.refusal(node, "rows of a table, or the last step of (N, T, features)")

    def _fork(self, nodes: list[onnx.NodeProto]) -> None:
        """GELU and SiLU, which read their argument twice."""
        kinds = {node.op_type: node for node in nodes}
        if len(nodes) == 2 and kinds.keys() == {"Sigmoid", "Mul"}:
            if set(kinds["Mul"].input) == {self.value, kinds["Sigmoid"].output[0]}:
                self.plans.append(Plan(layers.Activation, ("silu",)))
                self.value = kinds["Mul"].output[0]
                return
        elif len(nodes) == 2 and kinds.keys() == {"Div", "Mul"}:
            found = self._gelu(kinds["Div"], kinds["Mul"])
            if found is not None:
                self.plans.append(Plan(layers.Activation, ("gelu",)))
                self.value = found
                return
        readers = " and ".join(f"{quoted(node.name)}, a {cut(node.op_type)}" for node in nodes[:3])
        raise DataError(
            f"{self.g.path}: {quoted(self.value)} is read by {readers}; expected "
            + (_WHOLE_RNN if self._is_taken_apart() else "one reader, as a chain of layers has")
        )

    def _is_taken_apart(self) -> bool:
        """Return whether there are many slices and activations, as of the steps of an RNN."""
        kinds = Counter(node.op_type for node in self.g.proto.node)
        return kinds["Slice"] > 1 and max(kinds["Tanh"], kinds["Relu"]) > 1

    def _gelu(self, divided: onnx.NodeProto, product: onnx.NodeProto) -> str | None:
        """The output of x · (erf(x/√2) + 1) · ½; None for something else."""
        value, node = self.value, divided
        for kind, number in (("Div", math.sqrt(2.0)), ("Erf", None), ("Add", 1.0)):
            if not self._is(node, kind, value, number):
                return None
            value = node.output[0]
            node = self._only_reader(value) or divided
        half = self._only_reader(product.output[0])
        is_product = set(product.input) == {self.value, value} and node.output == product.output
        if not is_product or half is None or not self._is(half, "Mul", product.output[0], 0.5):
            return None
        return str(half.output[0])

    def _only_reader(self, value: str) -> onnx.NodeProto | None:
        readers = self.g.readers(value)
        return readers[0] if len(readers) == 1 else None

    def _is(self, node: onnx.NodeProto, kind: str, value: str, number: float | None) -> bool:
        """Return whether a node is of this kind, reads the value, and this number beside it."""
        if node.op_type != kind or value not in node.input:
            return False
        others = [self.g.constant(name) for name in node.input if name != value]
        if number is None:
            return others == []
        other = others[0] if len(others) == 1 else None
        return (
            other is not None
            and other.size == 1
            and math.isclose(other.item(), number, rel_tol=1e-6)
        )
