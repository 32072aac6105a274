"""Examples to run a model on where none are given, and what is too large to be written out."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.equations.models.flow import Flow, first_layer
from handgrad.errors import ArgumentError
from handgrad.layers import Embedding, Layer
from handgrad.layers.base import walk
from handgrad.losses import BinaryCrossEntropy, CrossEntropy

#: Sizes of a batch, of which one divides no size of the model, so that it is known by it.
_BATCHES: Final = (7, 11, 13, 17, 19, 23, 29, 31, 37)
#: The most entries of an array that numbers are written for, and the most nodes of a model.
ENTRIES: Final = 64
NODES: Final = 12


def as_batch(model: Layer, x: Any) -> Any:
    """A user's batch as an array, or as several; whole numbers become floats unless they may be
    tokens.

    Raises ArgumentError for what is no array of numbers.
    """
    if isinstance(x, tuple):
        return tuple(map(_as_array, x))
    try:
        batch = np.asarray(x)
    except ValueError as error:
        raise ArgumentError(
            f"notes: x is no array ({error}); allowed: a batch of examples"
        ) from None
    if batch.dtype.kind not in "fiub" or batch.ndim == 0 or len(batch) == 0:
        raise ArgumentError(
            f"notes: x is of {batch.dtype} and has shape {batch.shape}; allowed: numbers, with one "
            "example or more along the first axis"
        )
    if batch.dtype.kind in "iub" and not first_layer(model).takes_tokens:
        return batch.astype(_dtype(model))
    return batch


def _as_array(value: Any) -> Any:
    """An array, or the several that a state is."""
    if isinstance(value, tuple):
        return tuple(map(_as_array, value))
    return None if value is None else np.asarray(value)


def example(flow: Flow, batch: int) -> Any:
    """A batch of small whole numbers, or of tokens, in the type of the model's parameters."""
    rng = np.random.default_rng(0)
    first = flow.nodes[0].layer
    shape = (batch, *flow.input_shape)
    if first.takes_tokens:
        tables = (each for _, each in walk(first) if isinstance(each, Embedding))
        return rng.integers(0, min(len(each.weight) for each in tables), shape)
    dtypes = (_dtype(node.layer) for node in flow.nodes if node.layer.parameters)
    return rng.integers(-2, 4, shape).astype(next(dtypes, np.float64))


def target_for(loss: Any, y: Any) -> Any:
    """What the output could be compared with: classes, yes and no, or whole numbers."""
    rng = np.random.default_rng(1)
    if isinstance(loss, CrossEntropy):
        shape = list(y.shape)
        classes = shape.pop(loss.class_axis)
        return rng.integers(0, classes, shape)
    high = 2 if isinstance(loss, BinaryCrossEntropy) else 4
    return rng.integers(0, high, y.shape).astype(y.dtype)


def batch_unlike(flow: Flow) -> int:
    """A size for the batch that divides no size in the model, so that every multiple of it is one
    of the batch."""
    return next((batch for batch in _BATCHES if is_unlike(flow, batch)), _BATCHES[-1])


def is_unlike(flow: Flow, batch: int) -> bool:
    """True where the number of examples divides no size of the model."""
    sizes = {size for node in flow.nodes for size in (*node.shape, *_sizes(node.layer))}
    sizes |= {size for each in flow.input_shapes for size in each}
    return all(size % batch for size in sizes if size)


def too_large(flow: Flow, batch: int) -> str:
    """What is too large to be written in numbers, in code; "" where everything is small enough."""
    if len(flow.nodes) > NODES:
        return f"{len(flow.nodes)} layers > {NODES}"
    for node in flow.nodes:
        name = node.name or type(node.layer).__name__
        found = {name: (batch, *node.shape)}
        if not node.is_sum:
            found |= {f"{name}.{key}": value.shape for key, value in node.layer.parameters.items()}
        for what, shape in found.items():
            if int(np.prod(shape)) > ENTRIES:
                return f"{what} {shape} > {ENTRIES}"
    return ""


def _dtype(layer: Layer) -> Any:
    """The type of its parameters."""
    return next((array.dtype for array in layer.parameters.values()), np.dtype(np.float64))


def _sizes(layer: Layer) -> set[int]:
    return {size for array in layer.parameters.values() for size in array.shape}
