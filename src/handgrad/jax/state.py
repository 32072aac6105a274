"""The state of a training as a pytree, out of a model and back into it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers.base import Layer
from handgrad.optimizers import Optimizer


class State(NamedTuple):
    """Everything that a step changes, by the names of the model.

    slots: of the optimizer, as {"m": {"0.weight": …}}; keys: the data of those of the generators,
    for dropout; steps: those that were made, a number; learning_rate: of the next step, which may
    be replaced by any other number of its type without compiling anew.
    """

    parameters: dict[str, Array]
    buffers: dict[str, Array]
    slots: dict[str, dict[str, Array]]
    keys: dict[str, Array]
    steps: Array
    learning_rate: Array


def init(model: Layer, optimizer: Optimizer) -> State:
    """The state that model and optimizer are in, on JAX's default device.

    Keys come from the generators as they stand, which are not advanced.
    Raises ArgumentError where the model is not built, is of several types, or is float64 while JAX
    computes in 32 bits.
    """
    if not isinstance(model, Layer):
        raise ArgumentError(f"jax.init: model is {shown(model)}; allowed: a layer")
    dtypes = sorted({str(array.dtype) for array in model.parameters.values()}) or ["float32"]
    if len(dtypes) > 1:
        raise ArgumentError(f"jax.init: parameters are {', '.join(dtypes)}; allowed: one type")
    if dtypes == ["float64"] and not jax.config.jax_enable_x64:
        raise ArgumentError(
            "jax.init: the model is float64; allowed: float32, or float64 after "
            'jax.config.update("jax_enable_x64", True)'
        )
    parameters = {name: jax.numpy.array(array) for name, array in model.parameters.items()}
    known = optimizer.state
    slots = {
        slot: {
            name: jax.numpy.array(known.get(f"{slot}.{name}", np.zeros_like(array)))
            for name, array in model.parameters.items()
        }
        for slot in optimizer.slots
    }
    return State(
        parameters,
        {name: jax.numpy.array(array) for name, array in model.buffers.items()},
        slots,
        drawn_keys(copy.deepcopy(model.generators)),
        jax.numpy.asarray(optimizer.steps, dtype=np.int32),
        jax.numpy.asarray(optimizer.lr, dtype=dtypes[0]),
    )


def drawn_keys(named: Mapping[str, np.random.Generator]) -> dict[str, Array]:
    """The data of a key for each generator, made of a number that is drawn from it."""
    seeds = {id(each): int(each.integers(2**31)) for each in dict.fromkeys(named.values())}
    return {
        name: jax.random.key_data(jax.random.key(seeds[id(each)])) for name, each in named.items()
    }


def load(model: Layer, state: State, optimizer: Optimizer | None = None) -> None:
    """Write parameters and buffers into the model, and what it keeps into the optimizer.

    Raises ArgumentError or ShapeError for the state of another model or optimizer.
    """
    model.update_parameters({name: np.asarray(each) for name, each in state.parameters.items()})
    model.update_buffers({name: np.asarray(each) for name, each in state.buffers.items()})
    if optimizer is not None:
        kept = {"step": np.asarray(state.steps, dtype=np.int64)}
        for slot, arrays in state.slots.items():
            kept |= {f"{slot}.{name}": np.asarray(array) for name, array in arrays.items()}
        optimizer.load_state(kept)
