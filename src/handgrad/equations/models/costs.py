"""What every node of a model costs: parameters, memory kept for backward, FLOPs both ways."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from handgrad.dispatch import KernelCache
from handgrad.equations.models.flow import Flow, Node
from handgrad.equations.models.passes import Forward, run_forward
from handgrad.errors import ShapeError
from handgrad.layers import Layer


@dataclass(frozen=True)
class Cost:
    """One node's; FLOPs are per example, and None where the layer does not tell them."""

    node: Node
    parameters: int
    cached: int
    forward: int | None
    backward: int | None


def costs(flow: Flow, x: Any) -> list[Cost]:
    """Every node's, in order, its cache measured in a forward pass of `x` in training.

    A multiply-add is 2 FLOPs. Backward is counted from forward: a layer with parameters does the
    work once for the gradients of its parameters and once for those of its input and of the values
    within it, another layer once for the latter. The gradient of a value that no parameter went
    into is not computed. Of a sum only what joins the gradients again, where its value forked,
    costs anything.
    """
    flow = copy.deepcopy(flow)
    cached = cached_bytes(flow, run_forward(flow, x, record=False))
    starts = {fork.join.number: fork.start for fork in flow.forks}
    found = []
    for node in flow.nodes:
        if node.is_sum:
            start = starts[node.number]
            joined = math.prod(flow.shape(start)) if start in flow.needed else 0
            found.append(Cost(node, 0, 0, math.prod(node.shape), joined))
            continue
        (value,) = node.inputs
        parameters = sum(array.size for array in node.layer.parameters.values())
        forward = _flops(node.layer, flow.shape(value))
        backward = None
        if forward is not None:
            saved = 0 if value in flow.needed else node.layer.input_flops(flow.shape(value))
            backward = forward * (2 if parameters else 1) - saved
        found.append(Cost(node, parameters, cached[node.number], forward, backward))
    return found


def cached_bytes(flow: Flow, forward: Forward) -> dict[int, int]:
    """The memory that each node's cache keeps for backward.

    An array counts once, where it is kept first; parameters and buffers count nowhere.
    """
    layers = [node.layer for node in flow.nodes]
    own = [
        each for layer in layers for each in (*layer.parameters.values(), *layer.buffers.values())
    ]
    seen = {id(_owner(array)) for array in own}
    found = {}
    for number, cache in forward.caches.items():
        found[number] = 0
        for array in _arrays(cache):
            owner = _owner(array)
            if id(owner) not in seen:
                seen.add(id(owner))
                found[number] += owner.nbytes
    return found


def _flops(layer: Layer, shape: tuple[int, ...]) -> int | None:
    try:
        return layer.flops(shape)
    except (NotImplementedError, ShapeError):  # such as of queries, keys and values of their own
        return None


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """The arrays in a cache."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, KernelCache):
        yield from _arrays(value.kept)
    elif isinstance(value, Mapping):
        yield from _arrays(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _arrays(part)
    elif is_dataclass(value):
        yield from _arrays(tuple(getattr(value, field.name) for field in fields(value)))


def _owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory this is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
