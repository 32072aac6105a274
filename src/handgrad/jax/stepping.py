"""A training step as a pure function, which `jax.jit` compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.jax.binding import bound, references
from handgrad.jax.state import State
from handgrad.layers.base import Layer
from handgrad.losses import Loss
from handgrad.optimizers import Optimizer

#: Inputs and targets, each one array or a tuple of them, such as ((x, lengths), targets).
#: The arrays of a model's inputs or of its targets.
Arrays: TypeAlias = Array | tuple[Array, ...]
Batch: TypeAlias = tuple[Arrays, Arrays]


class Metrics(NamedTuple):
    """The loss of a step, each layer's norm of its gradients, and what `measure` gave."""

    loss: Array
    gradient_norms: dict[str, Array]
    measured: object


def step(
    model: Layer,
    loss: Loss,
    optimizer: Optimizer,
    *,
    clip_norm: float | None = None,
    measure: Callable[..., object] | None = None,
) -> Callable[[State, Batch], tuple[State, Metrics]]:
    """`state, metrics = step(state, (inputs, targets))`, a pure function for `jax.jit`.

    Forward, loss, backward and the optimizer's update are the references that `hg.engine` calls
    "reference", on arrays of JAX. Settings of model, loss and optimizer are those at the time of
    tracing, the learning rate is the state's. Gradients are scaled down to the global norm
    `clip_norm` where they exceed it; measure(outputs, *targets) makes further metrics. Where the
    loss is not finite, the state stays as it was.

    Raises ArgumentError for a model that is no layer or a batch that is no pair; while it is
    traced also what layers, loss and ops raise, and ShapeError for a loss that is no single number.
    """
    if not isinstance(model, Layer):
        raise ArgumentError(f"jax.step: model is {shown(model)}; allowed: a layer")
    if clip_norm is not None and not clip_norm > 0:
        raise ArgumentError(f"jax.step: clip_norm is {clip_norm}; allowed: a positive number")

    def apply(state: State, batch: Batch) -> tuple[State, Metrics]:
        inputs, targets = _pair(batch, state)
        twin = bound(model, {**state.parameters, **state.buffers}, state.keys)
        with references():
            outputs, cache = twin.forward(*inputs, training=True)
            value, loss_cache = loss.forward(outputs, *targets)
            if value.shape != ():
                raise ShapeError(
                    f"jax.step: the loss has shape {value.shape}; allowed: one number, as by "
                    "reduction='mean'"
                )
            doutputs = loss.backward(loss_cache)
            _, gradients = twin.backward(doutputs, cache, input_gradient=False)
        norms = _norms(gradients)
        metrics = Metrics(value, norms, None if measure is None else measure(outputs, *targets))
        scale = 1.0 if clip_norm is None else _scale(norms, clip_norm)
        keys = {name: generator.key for name, generator in twin.generators.items()}  # type: ignore[attr-defined]
        found = _updated(optimizer, state, gradients, scale)
        found = found._replace(buffers=dict(twin.buffers), keys=keys)
        is_finite = jax.numpy.isfinite(value)
        kept = jax.tree.map(lambda new, old: jax.lax.select(is_finite, new, old), found, state)
        return kept, metrics

    return apply


def forward(model: Layer) -> Callable[..., Arrays]:
    """`outputs = forward(state, *inputs)` at inference, a pure function for `jax.jit`."""

    def apply(state: State, *inputs: Any) -> Any:
        inputs, _ = _pair((inputs, ()), state)
        twin = bound(model, {**state.parameters, **state.buffers}, state.keys)
        with references():
            return twin.forward(*inputs, training=False)[0]

    return apply


def _pair(batch: Any, state: State) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Inputs and targets as tuples, numbers that are floats in the type of the model."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ArgumentError(f"jax.step: the batch is {shown(batch)}; allowed: (inputs, targets)")
    inputs, targets = (each if isinstance(each, tuple) else (each,) for each in batch)
    dtype = state.learning_rate.dtype

    def own(array: Any) -> Any:
        is_float = jax.numpy.issubdtype(array.dtype, jax.numpy.floating)
        return jax.numpy.asarray(array, dtype=dtype if is_float else None)

    return jax.tree.map(own, inputs), jax.tree.map(own, targets)


def _norms(gradients: Mapping[str, Array]) -> dict[str, Array]:
    """The norm of every layer's gradients together."""
    squares: dict[str, Array] = {}
    for name, gradient in gradients.items():
        layer = name.rpartition(".")[0]
        squares[layer] = squares.get(layer, 0.0) + jax.numpy.sum(gradient * gradient)
    return {layer: jax.numpy.sqrt(square) for layer, square in squares.items()}


def _scale(norms: Mapping[str, Array], clip_norm: float) -> Array:
    """The factor of `optimizers.clipping_factor` for the norm of all layers."""
    norm = jax.numpy.sqrt(sum(each * each for each in norms.values()))
    return jax.numpy.minimum(1.0, clip_norm / (norm + 1e-6))


def _updated(
    optimizer: Optimizer, state: State, gradients: Mapping[str, Array], scale: Any
) -> State:
    """Parameters and slots by the optimizer's rule."""
    steps = state.steps + 1
    scaled = {name: scale * gradients[name] for name in state.parameters}
    parameters, slots = optimizer.updated(
        state.parameters,
        scaled,
        state.slots,
        lr=state.learning_rate,
        step=steps.astype(state.learning_rate.dtype),
    )
    return state._replace(parameters=parameters, slots=slots, steps=steps)
