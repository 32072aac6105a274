"""Both passes through a model, node by node: every value, every cache, every gradient."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.equations.models.flow import Flow
from handgrad.equations.models.recording import LayerRecorder
from handgrad.equations.subject import Subject


@dataclass(frozen=True)
class Forward:
    """`values` are h_0, h_1, ...; the others have a place for every layer, by its number."""

    values: tuple[Any, ...]
    caches: Mapping[int, Any]
    recorders: Mapping[int, LayerRecorder]


def run_forward(flow: Flow, x: Any, *, record: bool = True) -> Forward:
    """The forward pass in training. It advances generators and running statistics, as training
    does; the layers that are recorded are as they were before."""
    values = [x]
    caches: dict[int, Any] = {}
    recorders: dict[int, LayerRecorder] = {}
    for node in flow.nodes:
        taken = [values[value] for value in node.inputs]
        if node.is_sum:
            values.append(taken[0] + taken[1])
            continue
        inputs = taken[0] if isinstance(taken[0], tuple) else (taken[0],)
        if record:
            recorders[node.number] = LayerRecorder(copy.deepcopy(node.layer), inputs)
        y, caches[node.number] = node.layer.forward_y(*inputs, training=True)
        values.append(y)
    return Forward(tuple(values), caches, recorders)


def loss_subject(loss: Any, y: Any, target: Any) -> Subject:
    """A loss as the last node; its gradient is 1."""
    first, second, *_ = inspect.signature(loss.op.forward).parameters
    given = {name: value for name, value in loss.options.items() if value is not None}
    weights = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    options = {name: value for name, value in given.items() if name not in weights}
    if getattr(loss, "class_axis", 1) == -1:
        target = target.reshape(-1, *target.shape[y.ndim - 1 :])
        y = y.reshape(-1, y.shape[-1])
    arrays = {first: y, second: target, **weights}
    forward, backward = inspect.unwrap(loss.op.forward), inspect.unwrap(loss.op.backward)
    return Subject(type(loss).__name__, forward, backward, arrays, options, None, (first,))
