"""An ONNX graph as it is read: constants as arrays, and who reads and writes each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from handgrad.arrays import Array
from handgrad.errors import DataError
from handgrad.escaping import cut, quoted

#: Nodes that read only the shape of a value, and so take no part in what a chain computes.
_OF_SHAPE: Final = ("Shape", "Size")
#: Numbers in a shape that is computed, and nodes between it and what it is computed from.
_LONGEST_SHAPE: Final = 16
_DEEPEST: Final = 12

#: Errors for attributes and constants of a damaged file, of other kinds than the standard has.
UNFIT: Final = (TypeError, ValueError, LookupError, AttributeError)

#: Functions of shapes, which exporters write to compute the shapes of others.
_SHAPE_FUNCTIONS: Final[Mapping[str, Callable[..., Array]]] = {
    "Concat": lambda *parts: np.concatenate(parts),
    "Gather": lambda x, index: x[index],
    "Identity": lambda x: x,
    "Mul": lambda a, b: a * b,
    "Reshape": lambda x, shape: x.reshape(shape),
    "Slice": lambda x, first, end, *_: x[first.item() : end.item()],
    "Squeeze": lambda x, *_: x.reshape(()),
    "Unsqueeze": lambda x, *_: x.reshape(1),
}


class ReadGraph:
    """The nodes of a file by the values that they read and write; sentences name its path."""

    def __init__(self, path: Path, proto: onnx.GraphProto) -> None:
        self.path = path
        self.proto = proto
        self._tensors = {each.name: each for each in proto.initializer}
        self._arrays: dict[str, Array] = {}
        self._writers = {name: node for node in proto.node for name in node.output if name}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in proto.node:
            for name in dict.fromkeys(node.input):
                self._readers.setdefault(name, []).append(node)

    @property
    def inputs(self) -> list[str]:
        """The inputs that have no value in the file."""
        return [each.name for each in self.proto.input if each.name not in self._tensors]

    def declared(self, value: str) -> list[int | None]:
        """The lengths of a value's axes as the file says them, None for any; [] without a word."""
        for each in (*self.proto.input, *self.proto.value_info, *self.proto.output):
            if each.name == value:
                return [axis.dim_value or None for axis in each.type.tensor_type.shape.dim]
        return []

    @property
    def outputs(self) -> list[str]:
        return [each.name for each in self.proto.output]

    def has(self, value: str) -> bool:
        """Return whether the graph has a value of this name that is no constant."""
        return value in self._writers or value in self.inputs

    def readers(self, value: str) -> list[onnx.NodeProto]:
        """The nodes that compute with a value."""
        found = self._readers.get(value, [])
        return [node for node in found if node.op_type not in _OF_SHAPE]

    def writer(self, value: str) -> onnx.NodeProto | None:
        return self._writers.get(value)

    def constant(self, value: str, deepest: int = 8) -> Array | None:
        """The array of a value that depends on no input; None where it does, or may."""
        if value in self._arrays:  # many nodes may read one large constant
            return self._arrays[value]
        node = self._writers.get(value)
        if value in self._tensors or (node is not None and node.op_type == "Constant"):
            tensor = self._tensors.get(value)
            found = self._of_constant(node) if tensor is None else self.array(tensor)
            if found is not None:
                self._arrays[value] = found
            return found
        if node is None or deepest == 0:
            return None
        if node.op_type in ("Identity", "Transpose") and len(node.input) == 1:
            array = self.constant(node.input[0], deepest - 1)
            if array is None or node.op_type == "Identity":
                return array
            perm = attributes(node).get("perm")
            if perm is None or sorted(perm) == list(range(array.ndim)):
                return array.transpose(perm)
        return None

    def array(self, tensor: onnx.TensorProto) -> Array:
        """The values of a tensor. Raises DataError for one that is damaged."""
        try:
            return np.asarray(numpy_helper.to_array(tensor))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise DataError(
                f"{self.path}: the values of {quoted(tensor.name)} are damaged: "
                f"{cut(str(error), 200)}; expected as many as its shape says"
            ) from None

    def is_zero(self, value: str, deepest: int = 8) -> bool:
        """Return whether a value is 0 throughout whatever its shape, as an initial state is."""
        array = self.constant(value)
        if array is not None:
            return not array.any()
        node = self._writers.get(value)
        if node is None or deepest == 0:
            return False
        if node.op_type == "ConstantOfShape":
            fill = attributes(node).get("value")
            return fill is None or not self.array(fill).any()
        if node.op_type in ("Expand", "Slice", "Reshape", "Unsqueeze", "Squeeze", "Identity"):
            return self.is_zero(node.input[0], deepest - 1)
        return False

    def shape_for(self, value: str, of: str, shape: Sequence[int]) -> Array | None:
        """What a shape that is computed from that of the value `of` comes to where that is `shape`.

        None for one that is computed in another way.
        """
        return self._shape_for(value, of, np.array(shape), _DEEPEST, {})

    def _shape_for(
        self, value: str, of: str, shape: Array, deepest: int, known: dict[tuple[str, int], Any]
    ) -> Array | None:
        """The same, with what is known by value and depth.

        A value that is read many times is computed once, so that the work is at most the number of
        nodes × the depth; without this 16 readers at each of six levels are 16⁶ computations.
        """
        key = (value, deepest)
        if key not in known:
            found = self._shape_of(value, of, shape, deepest, known)
            known[key] = None if found is None or found.size > _LONGEST_SHAPE else found
        return known[key]

    def _shape_of(
        self, value: str, of: str, shape: Array, deepest: int, known: dict[tuple[str, int], Any]
    ) -> Array | None:
        constant = self.constant(value)
        node = self._writers.get(value)
        if constant is not None or node is None or deepest == 0:
            return constant
        if node.op_type == "Shape" and node.input[0] == of:
            found = attributes(node)
            return shape[found.get("start", 0) : found.get("end")]
        if node.op_type not in _SHAPE_FUNCTIONS or len(node.input) > _LONGEST_SHAPE:
            return None
        given = []
        for each in filter(None, node.input):
            part = self._shape_for(each, of, shape, deepest - 1, known)
            if part is None:
                return None
            given.append(part)
        try:
            return _SHAPE_FUNCTIONS[node.op_type](*given)
        except (TypeError, ValueError, IndexError):
            return None

    def _of_constant(self, node: onnx.NodeProto) -> Array | None:
        for name, value in attributes(node).items():
            if name == "value":
                return self.array(value)
            if name in ("value_float", "value_floats"):
                return np.asarray(value, np.float32)
            if name in ("value_int", "value_ints"):
                return np.asarray(value, np.int64)
        return None

    def refusal(self, node: onnx.NodeProto, expected: str) -> DataError:
        """The sentence for a node that no layer computes."""
        name = f" {quoted(node.name)}" if node.name else ""
        reads = f" of {quoted(node.input[0])}" if node.input and not node.name else ""
        kind = cut(node.op_type)
        return DataError(f"{self.path}: node{name}, a {kind}{reads}; expected {expected}")


def attributes(node: onnx.NodeProto) -> Mapping[str, Any]:
    """The attributes of a node by name, texts as str; one of an unknown kind is left out."""
    return dict(_attributes(node))


def axes_of(g: ReadGraph, node: onnx.NodeProto) -> list[int] | None:
    """The axes of a Squeeze or a reduction: its second input or, in older files, an attribute."""
    if len(node.input) > 1:
        found = g.constant(node.input[1])
        return None if found is None else [int(axis) for axis in found.reshape(-1)]
    return list(attributes(node).get("axes", [])) or None


def _attributes(node: onnx.NodeProto) -> Iterator[tuple[str, Any]]:
    for each in node.attribute:
        try:
            value = helper.get_attribute_value(each)
        except ValueError:
            continue
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        elif isinstance(value, list) and value and isinstance(value[0], bytes):
            value = [part.decode("utf-8", "replace") for part in value]
        if value is not None:
            yield each.name, value
