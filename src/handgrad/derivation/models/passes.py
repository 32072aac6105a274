"""Both passes through a model, node by node: every value, every cache, every gradient."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad.derivation.equations.subject import Subject
from handgrad.derivation.models.flow import Flow
from handgrad.derivation.models.recording import LayerRecorder
from handgrad.layers import Embedding, Layer, OpLayer

#: How close a layer's y is to that of its op, in float32 too.
_SAME: Final = 1e-4


@dataclass(frozen=True)
class Forward:
    """`values` are h_0, h_1, ...; the others have a place for every node, by its number.

    A node has a subject where it is one op, a recording where it is several.
    """

    values: tuple[Any, ...]
    caches: Mapping[int, Any]
    subjects: Mapping[int, Subject | None]
    recordings: Mapping[int, LayerRecorder]


def run_forward(flow: Flow, x: Any, *, record: bool = True) -> Forward:
    """The forward pass in training. It advances generators and running statistics, as training
    does; the subjects keep what they were before, as do the layers of recordings."""
    values = [x]
    caches: dict[int, Any] = {}
    subjects: dict[int, Subject | None] = {}
    recordings: dict[int, LayerRecorder] = {}
    for node in flow.nodes:
        taken = [values[value] for value in node.inputs]
        if node.is_sum:
            caches[node.number], subjects[node.number] = (), None
            values.append(taken[0] + taken[1])
            continue
        inputs = taken[0] if isinstance(taken[0], tuple) else (taken[0],)
        subject = subject_of(node.layer, inputs[0])
        before = copy.deepcopy(node.layer) if record else node.layer
        y, caches[node.number] = node.layer.forward_y(*inputs, training=True)
        subjects[node.number] = subject if _computes(subject, node.layer, y) else None
        if record and subjects[node.number] is None:
            recordings[node.number] = LayerRecorder(before, inputs)
        values.append(y)
    return Forward(tuple(values), caches, subjects, recordings)


def subject_of(layer: Layer, x: Any) -> Subject | None:
    """The op of a layer with what the layer gives it; None for a layer that is no single op.

    An op's arguments are the layer's attributes or `options` of the same names. A layer without one
    that its op needs, such as a LayerNorm without β, gives something else in its place.
    """
    op = getattr(layer, "op", None)
    if not isinstance(op, ModuleType):
        return None
    parameters = inspect.signature(op.forward).parameters
    first, *names = parameters
    settings = {"training": True, **getattr(layer, "options", {})}
    given = {
        name: settings[name] if name in settings else getattr(layer, name)
        for name in names
        if name in settings or hasattr(layer, name)
    }
    needed = (name for name in given if parameters[name].default is inspect.Parameter.empty)
    if any(given[name] is None for name in needed):
        return None
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    options = {name: value for name, value in given.items() if name not in arrays}
    unchanged = {
        name: value if name in layer.parameter_names else value.copy()
        for name, value in arrays.items()
    }
    takes_floats = (first,) if np.asarray(x).dtype.kind == "f" else ()
    return Subject(
        type(layer).__name__,
        inspect.unwrap(op.forward),
        inspect.unwrap(op.backward),
        {first: x, **unchanged},
        copy.deepcopy(options),
        gradients=(*takes_floats, *layer.parameter_names),
    )


def _computes(subject: Subject | None, layer: Layer, y: Any) -> bool:
    """Whether the layer does what its op does, and no more; a user's own layer may do more."""
    if subject is None or not isinstance(layer, OpLayer | Embedding):
        return False
    if type(layer).__module__.startswith("handgrad.layers."):
        return True
    found, _ = subject.forward(**subject.arrays, **subject.fresh_options())
    same = found.shape == y.shape and np.allclose(found, y, rtol=_SAME, atol=_SAME)
    return same and type(layer).backward is OpLayer.backward


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
