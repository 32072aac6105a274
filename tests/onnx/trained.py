"""Training by a graph of ONNX and by handgrad, side by side."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Layer
from handgrad.losses import Loss
from handgrad.optimizers import Optimizer
from tests.onnx.running import session

onnx = pytest.importorskip("onnx")

Batch = tuple[Any, Any]


def trained(
    model: Layer,
    loss: Loss,
    optimizer: Optimizer,
    make: Callable[[np.random.Generator], Batch],
    path: Path,
    *,
    steps: int,
) -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """The loss and the state by handgrad and by onnxruntime, after each step on a random batch."""
    rng = np.random.default_rng(1)
    batch = make(rng)
    state = hg.export_training(model, loss, optimizer, path, batch)
    numbers = _draws_given(path)
    rng_of_model = copy.deepcopy(next(iter(model.generators.values()), None))
    graph = session(path)
    wanted = [each.name for each in graph.get_inputs()]
    outputs = [each.name for each in graph.get_outputs()]
    dtype = next(iter(model.parameters.values())).dtype
    targets = [name for name in wanted if re.fullmatch(r"target(_\d)?", name)]
    not_given = {*state, *numbers, *targets, "lr", "step"}
    for number in range(steps):
        given, aims = (each if isinstance(each, tuple) else (each,) for each in batch)
        first = [name for name in wanted if name not in not_given]
        feeds = {**dict(zip(first, given, strict=True)), **dict(zip(targets, aims, strict=True))}
        feeds |= state
        feeds |= {"lr": np.asarray(optimizer.lr, dtype), "step": np.asarray(number)}
        for name, shape in numbers.items():
            feeds[name] = rng_of_model.random(shape, dtype=np.float32).astype(dtype)
        found = graph.run(None, {name: feeds[name] for name in wanted})
        new = dict(zip(outputs, found, strict=True))
        state = {name: new[f"new.{name}"] for name in state}
        value = _step(model, loss, optimizer, given, aims)
        ours = {**model.parameters, **model.buffers, **optimizer.state, "loss": value}
        yield {name: ours[name] for name in ("loss", *state)}, {"loss": new["loss"], **state}
        batch = make(rng)


def _draws_given(path: Path) -> dict[str, tuple[int, ...]]:
    """Make inputs of the random numbers that the graph draws; their names and shapes."""
    proto = onnx.load(path)
    drawn = [node for node in proto.graph.node if node.op_type == "RandomUniform"]
    shapes: dict[str, tuple[int, ...]] = {}
    for node in drawn:
        said = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        (name,) = node.output
        shapes[name] = tuple(said["shape"])
        known = onnx.helper.make_tensor_value_info(name, said["dtype"], shapes[name])
        proto.graph.input.append(known)
        proto.graph.node.remove(node)
    onnx.save(proto, path)
    return shapes


def _step(
    model: Layer,
    loss: Loss,
    optimizer: Optimizer,
    inputs: tuple[Any, ...],
    targets: tuple[Any, ...],
) -> np.ndarray:
    y, cache = model.forward(*inputs, training=True)
    value, loss_cache = loss.forward(y, *targets)
    _, gradients = model.backward(loss.backward(loss_cache), cache, input_gradient=False)
    optimizer.step(model.parameters, gradients)
    return value
