"""Training that runs away: in which layer numbers first stopped being finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import RunError
from handgrad.layers.base import Layer, walk
from handgrad.training.state import TrainState

#: Weights that no training is meant to have.
_LARGE: Final = 1e4


def diverged(state: TrainState, what: str) -> RunError:
    """The error for `what` is not finite in this step: how to go on from before."""
    lr = f"{state.optimizer.lr / 10:g}"
    advice = f", such as lr={lr}"
    if state.run is not None:
        way = state.run.change_command.format(lr=lr)
        advice = f"; continue from the last checkpoint with: {way}"
    return RunError(
        f"training: {what}; a smaller learning rate or clip_norm usually prevents this{advice}"
    )


def gradients_diverged(state: TrainState, layer: str) -> RunError:
    """The error for a gradient of this layer that is not finite, the first on its way."""
    return diverged(
        state,
        f"the gradient of the layer {layer} is not finite at step {state.step + 1} "
        f"(epoch {state.epoch + 1})",
    )


def layer_of(arrays: Mapping[str, Array]) -> str | None:
    """The layer nearest to the loss of which one of these arrays has a value that is not finite.

    Gradients come from the loss, so it is the layer where that began. None where all are finite.
    """
    for name in reversed(list(arrays)):
        if not is_finite(arrays[name]):
            return name.rpartition(".")[0] or "model"
    return None


def find_cause(model: Layer, inputs: Sequence[Any]) -> str:
    """Why the loss of a batch of finite inputs is not finite, in words: the weights, or a layer."""
    broken = layer_of(model.parameters)
    if broken is not None:
        return f"the weights of the layer {broken} are not finite since the step before"
    first = _first_output(model, inputs)
    grown = _grown(model.parameters)
    if first is not None:
        return f"the output of the layer {first} is the first that is not finite{grown}"
    return f"the outputs of all layers are finite, the loss of them is not{grown}"


def _grown(parameters: Mapping[str, Array]) -> str:
    """The layer whose gradient took its weights furthest, where they are beyond all sense."""
    sizes = {name: float(np.abs(array).max(initial=0.0)) for name, array in parameters.items()}
    name = max(sizes, key=lambda each: sizes[each], default="")
    if not name or sizes[name] < _LARGE:
        return ""
    layer = name.rpartition(".")[0] or "model"
    return (
        f"; the gradient of the layer {layer} exploded, and has taken its weights to "
        f"{sizes[name]:.0e}"
    )


def _first_output(model: Layer, inputs: Sequence[Any]) -> str | None:
    """The layer whose output is the first that is not finite, by running the model again.

    Its buffers and generators are put back afterwards.
    """
    buffers = {name: np.array(array) for name, array in model.buffers.items()}
    states = {name: each.bit_generator.state for name, each in model.generators.items()}
    found: list[str] = []
    watched = {id(layer): (name or "model", layer) for name, layer in walk(model)}
    for name, layer in watched.values():
        layer.forward = _watching(name, layer, found)  # type: ignore[method-assign]
    try:
        with np.errstate(all="ignore"):
            model.forward(*inputs, training=True)
    finally:
        for _, layer in watched.values():
            del layer.forward
        model.update_buffers(buffers)
        for name, generator in model.generators.items():
            generator.bit_generator.state = states[name]
    return found[0] if found else None


def _watching(name: str, layer: Layer, found: list[str]) -> Any:
    forward = layer.forward

    def watch(*inputs: Any, **settings: Any) -> Any:
        result = forward(*inputs, **settings)
        if not found and not is_finite(result[0]):
            found.append(name)
        return result

    return watch


def is_finite(array: Any) -> bool:
    """Return whether it has neither NaN nor infinity; what is no array of floats has none."""
    floats = isinstance(array, np.ndarray) and array.dtype.kind == "f"
    return not floats or bool(np.isfinite(array).all())
