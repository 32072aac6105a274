"""A training step as an ONNX file, checked, and the state that it starts from."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

import handgrad
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers.base import Layer
from handgrad.losses import Loss
from handgrad.onnx.export.file import save
from handgrad.onnx.graph import IR_VERSION, OPSET, Graph
from handgrad.onnx.training.emit import GraphEmitter, lengths, number
from handgrad.onnx.training.primitives import RULES
from handgrad.onnx.training.step import TracedStep, traced_step
from handgrad.optimizers import Optimizer
from handgrad.paths import as_path


def write(
    model: Layer,
    loss: Loss,
    optimizer: Optimizer,
    path: str | os.PathLike[str],
    batch: Any,
    start: str | os.PathLike[str] | None,
) -> dict[str, NDArray[Any]]:
    """The work of `hg.export_training`."""
    for name, value, kind, allowed in (
        ("model", model, Layer, "a layer"),
        ("loss", loss, Loss, "a loss"),
        ("optimizer", optimizer, Optimizer, "an optimizer"),
    ):
        if not isinstance(value, kind):
            raise ArgumentError(f"export_training: {name} is {shown(value)}; allowed: {allowed}")
    location = as_path("export_training", path)
    step = traced_step(model, loss, optimizer, batch)
    floats = [array.dtype for array in model.parameters.values()]
    dtype = floats[0] if floats else np.dtype(np.float32)
    save("export_training", location, step_proto(step, dtype))
    if start is not None:
        save("export_training", as_path("export_training", start), _start_proto(step, dtype))
    return {name: np.array(array) for name, array in step.state.items()}


def step_proto(step: TracedStep, dtype: np.dtype[Any]) -> onnx.ModelProto:
    """The step as a model of ONNX whose floats have this type."""
    g = Graph(dtype, {}, lambda _: None)
    e = GraphEmitter(g, RULES)
    inputs = []
    for name, node in step.inputs.items():
        own = e.of_kind(node.kind)
        e.given(node, name, own)
        inputs.append(helper.make_tensor_value_info(name, number(own), lengths(node)))
    for node in step.drawn:
        drawn = g.op("RandomUniform", dtype=g.kind, shape=list(lengths(node)))
        e.given(node, drawn, dtype)
    values = e.emit(step.program)
    outputs = []
    for name, value, node in zip(step.outputs, values, step.program.outputs, strict=True):
        g.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        own = e.of_kind(node.kind)
        outputs.append(helper.make_tensor_value_info(name, number(own), lengths(node)))
    return _model("training_step", g, inputs, outputs)


def _start_proto(step: TracedStep, dtype: np.dtype[Any]) -> onnx.ModelProto:
    """A graph without inputs whose outputs are the state to start from."""
    g = Graph(dtype, {}, lambda _: None)
    outputs = []
    for name, array in step.state.items():
        node = helper.make_node("Identity", [g.named(f"{name}.start", array)], [name], name=name)
        g.nodes.append(node)
        kind = number(array.dtype)
        outputs.append(helper.make_tensor_value_info(name, kind, array.shape))
    return _model("start", g, [], outputs)


def _model(name: str, g: Graph, inputs: list[Any], outputs: list[Any]) -> onnx.ModelProto:
    proto = helper.make_model(
        helper.make_graph(g.nodes, name, inputs, outputs, list(g.constants.values())),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="handgrad",
        producer_version=handgrad.__version__,
    )
    onnx.checker.check_model(proto)
    return proto
