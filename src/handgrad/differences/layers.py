"""A `ForwardBackward` of a layer or model of this library, with its parameters."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from handgrad.forward_backward import ForwardBackward
from handgrad.layers import Layer
from handgrad.layers.base import reads_tokens, walk
from handgrad.layers.flat import FlatArrays


def of_layer(
    layer: Layer, names: Sequence[str], arrays: Sequence[Any], options: Mapping[str, Any]
) -> ForwardBackward:
    """A layer or model; its parameters follow the inputs, in the type of these.

    names: of the inputs, one for each array.

    Every forward starts from the same buffers and generators, so that dropout draws one mask.
    """
    start = copy.deepcopy(layer)
    parameters = start.parameters
    floats = _differentiable(layer, names, arrays)

    def forward(*arrays: np.ndarray) -> tuple[Any, Any]:
        inputs, weights = arrays[: len(names)], arrays[len(names) :]
        model = copy.deepcopy(start)
        given = dict(zip(parameters, weights, strict=True))
        if given:
            model.bind(FlatArrays.of(given))
            model.update_parameters(given)
            _convert_buffers(model, weights[0].dtype)
        y, cache = model.forward(*inputs, **{"training": True, **options})
        return y, (model, cache)

    def backward(dy: Any, cache: Any) -> Any:
        model, kept = cache
        dinputs, gradients = model.backward(dy, kept)
        several = dinputs if isinstance(dinputs, tuple) else (dinputs,)
        of_inputs = dict(zip(names, several, strict=False))  # the state's, where it is not given
        found = [of_inputs[name] for name in floats]
        found += [gradients[name] for name in parameters]
        return tuple(found) if len(found) > 1 else found[0]

    return ForwardBackward(
        name=type(layer).__name__,
        inputs=(*names, *parameters),
        gradients=(*floats, *parameters),
        forward=forward,
        backward=backward,
        parameters={name: np.asarray(array, np.float64) for name, array in parameters.items()},
    )


def _convert_buffers(model: Layer, dtype: Any) -> None:
    for _, part in walk(model):
        for name in (*part.buffer_names, *part.frozen):
            if (buffer := getattr(part, name)) is not None:
                setattr(part, name, buffer.astype(dtype))


def _differentiable(layer: Layer, names: Sequence[str], arrays: Sequence[Any]) -> list[str]:
    """The inputs that have a gradient: all but integers beside x, and tokens in the place of x."""
    first, *others = zip(names, arrays, strict=True)
    found = [] if reads_tokens(layer) else [first[0]]
    return found + [name for name, array in others if np.asarray(array).dtype.kind == "f"]
