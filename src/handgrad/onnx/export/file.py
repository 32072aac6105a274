"""A model as an ONNX file: its graph, checked, with the metadata that belong to its use."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, shape_inference

import handgrad
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, RunError
from handgrad.inference.trained import TrainedModel
from handgrad.io.files import description
from handgrad.layers.base import Layer, walk
from handgrad.onnx.export.inputs import Input, inputs_of
from handgrad.onnx.export.table import rule_of
from handgrad.onnx.graph import IR_VERSION, OPSET, Graph
from handgrad.paths import as_path
from handgrad.writing import reason, write_file

#: The most that a file of protocol buffers holds.
_LARGEST: Final = 2**31 - 1


def write(
    model: Layer | TrainedModel,
    path: str | os.PathLike[str],
    input_shape: Sequence[int | None] | None,
    lengths: bool,
) -> None:
    """The work of `hg.export_onnx`."""
    trained = model if isinstance(model, TrainedModel) else TrainedModel(model)
    if not isinstance(trained.model, Layer):
        raise ArgumentError(
            f"export_onnx: model is {shown(model)}; allowed: a layer or a hg.TrainedModel"
        )
    location = as_path("export_onnx", path)
    save("export_onnx", location, model_proto(trained, input_shape=input_shape, lengths=lengths))


def save(function: str, location: Path, proto: onnx.ModelProto) -> None:
    """Write a model of ONNX. Raises ArgumentError for one that no file holds, and RunError."""
    if proto.ByteSize() > _LARGEST:
        raise ArgumentError(
            f"{function}: the model has {proto.ByteSize()} bytes; allowed: {_LARGEST}, the most "
            "that one file of ONNX holds"
        )
    try:
        write_file(location, proto.SerializeToString())
    except OSError as error:
        raise RunError(f"{location} cannot be written: {reason(error)}") from None


def model_proto(
    trained: TrainedModel,
    *,
    input_shape: Sequence[int | None] | None = None,
    lengths: bool = False,
) -> onnx.ModelProto:
    """The model as `export_onnx` writes it."""
    inputs = inputs_of(trained.model, input_shape, lengths, trained.input_shape)
    g = graph_of(trained.model, [each.name for each in inputs])
    graph = helper.make_graph(
        g.nodes,
        type(trained.model).__name__,
        [_value_info(g, each) for each in inputs],
        [helper.make_tensor_value_info("y", g.kind, None)],
        list(g.constants.values()),
    )
    proto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="handgrad",
        producer_version=handgrad.__version__,
    )
    (known,) = shape_inference.infer_shapes(proto).graph.output
    proto.graph.output[0].CopyFrom(known)
    helper.set_model_props(proto, _metadata(trained))
    onnx.checker.check_model(proto)
    return proto


def graph_of(model: Layer, inputs: Sequence[str]) -> Graph:
    """The nodes and constants from these inputs, by name, to the output `y`."""
    arrays = {**model.parameters, **model.buffers}
    names = {id(layer): name for name, layer in walk(model)}
    names |= {id(array): name for name, array in arrays.items()}
    floats = [array.dtype for array in arrays.values() if array.dtype.kind == "f"]
    g = Graph(floats[0] if floats else np.dtype(np.float32), names, rule_of)
    first, *others = inputs
    y = g.layer(model, first, **{name: name for name in others})
    g.nodes.append(helper.make_node("Identity", [y], ["y"], name="y"))
    return g


def _metadata(trained: TrainedModel) -> dict[str, str]:
    found = {"handgrad": description(trained)}
    if trained.classes is not None:
        found["classes"] = json.dumps(trained.classes, ensure_ascii=False)
    if trained.preprocessing.steps:
        found["preprocessing"] = json.dumps(trained.preprocessing.describe(), ensure_ascii=False)
    return found


def _value_info(g: Graph, given: Input) -> Any:
    kind = onnx.TensorProto.INT64 if given.integers else g.kind
    return helper.make_tensor_value_info(given.name, kind, ["batch", *given.axes])
