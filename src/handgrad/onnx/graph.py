"""An ONNX graph while it is built: values by name, nodes in their order, constants once each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers.base import Layer

#: Version of the standard's operators. It has LayerNormalization, and every runtime of the last
#: years reads it.
OPSET: Final = 17
#: Version of the file format that belongs to it.
IR_VERSION: Final = 8

#: The axes of what goes through a loop, (N, features) with any length.
_ROWS: Final = (None, None)

#: A value of the graph, by its name.
Value = str
Body = Callable[["Graph", Sequence[Value], Sequence[Value]], tuple[list[Value], list[Value]]]


class Graph:
    """Nodes and constants; `op` appends a node and gives the name of its output.

    `names` are those of layers and arrays by id: an array that is a parameter stands in the file
    under the parameter's name, as it is, and a node under the name of the layer that it computes.
    """

    def __init__(
        self, dtype: np.dtype[Any], names: Mapping[int, str], rule_of: Callable[[Layer], Any]
    ) -> None:
        self.dtype = dtype
        #: The standard's number of that type.
        self.kind = int(helper.np_dtype_to_tensor_dtype(dtype))
        self.names = names
        self.rule_of = rule_of
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self._numbers: Iterator[int] = count()
        self._scope = ""
        self._known: dict[Any, str] = {}

    # -- values -----------------------------------------------------------------------------------

    def constant(self, array: Any) -> Value:
        """An array as it is; a parameter under its own name, and equal ones once."""
        own = self.names.get(id(array))
        array = np.asarray(array, order="C")
        key = own or (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            name = own or f"constant_{next(self._numbers)}"
            self.constants[name] = numpy_helper.from_array(array, name)
            self._known[key] = name
        return self._known[key]

    def named(self, name: str, array: Array) -> Value:
        """A constant made of parameters, under a name within that of the layer."""
        name = f"{self._scope}.{name}" if self._scope else name
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def number(self, value: float) -> Value:
        """A scalar of the type of the model."""
        return self.constant(np.asarray(value, self.dtype))

    def ints(self, *values: int) -> Value:
        """Axes, shapes or indices."""
        return self.constant(np.array(values, np.int64))

    def index(self, value: int) -> Value:
        """One integer, without an axis."""
        return self.constant(np.asarray(value, np.int64))

    # -- nodes ------------------------------------------------------------------------------------

    def layer(self, layer: Layer, *inputs: Value, **settings: Value) -> Value:
        """The output of a layer. Raises ArgumentError for one that has no rule."""
        rule = self.rule_of(layer)
        if rule is None:
            raise self.refusal(layer, "has a forward that ONNX export does not know")
        with self.within(layer):
            y: Value = rule(self, layer, *inputs, **settings)
        return y

    def refusal(self, layer: Layer, reason: str) -> ArgumentError:
        """The sentence for a layer that cannot be exported."""
        name = self.names.get(id(layer))
        what = f"layer {name}, a {type(layer).__name__}," if name else type(layer).__name__
        return ArgumentError(
            f"export_onnx: {what} {reason}; allowed: layers and models that docs/onnx.md lists"
        )

    @contextmanager
    def within(self, layer: Any) -> Iterator[None]:
        """Name the nodes made inside after this layer."""
        outer, self._scope = self._scope, self.names.get(id(layer), self._scope)
        yield
        self._scope = outer

    def op(self, kind: str, *inputs: Value | None, **attributes: Any) -> Value:
        """The output of a new node; None among the inputs leaves an optional one out."""
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: Value | None, **attributes: Any) -> list[Value]:
        """The outputs of a new node of several."""
        prefix = f"{self._scope}/" if self._scope else ""
        name = f"{prefix}{kind}_{next(self._numbers)}"
        made = [f"{name}.{i}" if outputs > 1 else name for i in range(outputs)]
        given = ["" if each is None else each for each in inputs]
        self.nodes.append(helper.make_node(kind, given, made, name=name, **attributes))
        return made

    def scan(
        self, body: Body, states: Sequence[Value], items: Sequence[Value], *, reverse: bool = False
    ) -> tuple[list[Value], list[Value]]:
        """The last states, and what every step gave, of a loop over axis 0 of the items.

        `body(graph, states, items_of_a_step)` gives the next states and the outputs of a step, all
        of them floats (N, features). It may use every value from outside.
        """
        inner = self._inside()
        ins = [f"{inner._scope}/in_{next(self._numbers)}" for _ in (*states, *items)]
        new, outputs = body(inner, ins[: len(states)], ins[len(states) :])
        # An output of a body has to be a node's, under a name of its own.
        outs = [inner.op("Identity", each) for each in (*new, *outputs)]
        graph = helper.make_graph(
            inner.nodes,
            f"{self._scope}/step",
            [helper.make_tensor_value_info(name, self.kind, _ROWS) for name in ins],
            [helper.make_tensor_value_info(name, self.kind, _ROWS) for name in outs],
        )
        made = self.ops(
            "Scan",
            len(outs),
            *states,
            *items,
            body=graph,
            num_scan_inputs=len(items),
            scan_input_directions=[int(reverse)] * len(items),
            scan_output_directions=[int(reverse)] * len(outputs),
        )
        return made[: len(states)], made[len(states) :]

    def _inside(self) -> Graph:
        """The graph of a loop's body, whose constants and names are those of this one."""
        inner = Graph(self.dtype, self.names, self.rule_of)
        inner.constants, inner._known = self.constants, self._known
        inner._numbers, inner._scope = self._numbers, self._scope
        return inner

    # -- what several families need ---------------------------------------------------------------

    def size(self, x: Value, axis: int) -> Value:
        """The length of an axis, as an array of one integer."""
        return self.op("Gather", self.op("Shape", x), self.ints(axis), axis=0)

    def positions(self, x: Value, axis: int) -> Value:
        """0, 1, … along an axis of x, as an array of integers."""
        length = self.op("Squeeze", self.size(x, axis), self.ints(0))
        return self.op("Range", self.index(0), length, self.index(1))

    def linear(self, x: Value, weight: Array, bias: Array | None = None) -> Value:
        """x Wᵀ + b on the last axis; the weight stays as it is in the file."""
        y = self.op("MatMul", x, self.turned(weight))
        return y if bias is None else self.op("Add", y, self.constant(bias))

    def turned(self, weight: Array) -> Value:
        """Wᵀ. Runtimes compute it once, before the first call."""
        return self.op("Transpose", self.constant(weight), perm=[1, 0])

    def within_lengths(self, x: Value, lengths: Value) -> Value:
        """(N, T), True for the steps of x (N, T, …) among the first `lengths` of each sequence."""
        ends = self.op("Unsqueeze", lengths, self.ints(1))
        return self.op("Less", self.positions(x, 1), ends)

    def masked(self, x: Value, visible: Value) -> Value:
        """x where `visible` is True, elsewhere 0."""
        return self.op("Where", visible, x, self.number(0.0))

    def softmax(self, scores: Value, visible: Value | None = None) -> Value:
        """Weights along the last axis: 0 where not visible, even in a row that is so throughout."""
        if visible is None:
            return self.op("Softmax", scores, axis=-1)
        least = self.number(float(np.finfo(self.dtype).min))
        weights = self.op("Softmax", self.op("Where", visible, scores, least), axis=-1)
        return self.masked(weights, visible)
