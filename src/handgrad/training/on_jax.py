"""The backend "jax" of `hg.Trainer`: its steps on the devices of JAX."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Final

import jax
import numpy as np
from jax.sharding import Mesh

from handgrad.arrays import Array
from handgrad.data.ragged import padded_to
from handgrad.data.sources import Source
from handgrad.jax.sharding import shard, share
from handgrad.jax.state import State, drawn_keys, init, load
from handgrad.jax.stepping import step
from handgrad.training.divergence import gradients_diverged
from handgrad.training.gradients import batch_at, loss_diverged
from handgrad.training.metrics import Judge, Sums
from handgrad.training.state import TrainState

#: Every shape of a batch is compiled, so sequences are padded to lengths that come again.
PADDING: Final = 16


class JaxUpdate:
    """The update as a compiled step, on a state that stays on the devices until it is published.

    The model's generators give every step its keys, so a checkpoint has all that resuming takes.
    """

    def __init__(self, state: TrainState) -> None:
        self._state = state
        self._judge = Judge(state.loss)
        self._mesh = Mesh(np.array(jax.devices()[: state.devices]), ("data",))
        self._placed: State | None = None

    @cached_property
    def _step(self) -> Any:
        state = self._state
        pure = step(
            state.model,
            state.loss,
            state.optimizer,
            clip_norm=state.clip_norm,
            measure=self._judge.predicted,
        )
        places = jax.tree.map(lambda array: array.sharding, self._placed)
        return jax.jit(pure, out_shardings=(places, None), donate_argnums=0)

    def __call__(
        self, source: Source, index: Array, sums: Sums, rate: float, *, wants_norms: bool
    ) -> dict[str, float]:
        state = self._state
        with padded_to(PADDING):
            inputs, targets = batch_at(state, source, index, state.augmenting)
        if self._placed is None:
            self._placed = shard(init(state.model, state.optimizer), self._mesh, {})
        placed = self._placed._replace(
            learning_rate=np.asarray(rate, dtype=state.parameters.buffer.dtype),
            keys=drawn_keys(state.model.generators),
        )
        self._placed, metrics = self._step(placed, share((inputs, targets), self._mesh))
        value = float(metrics.loss)
        predicted = None if metrics.measured is None else np.asarray(metrics.measured)
        self._judge.count_predicted(sums, value, predicted, targets)
        if not math.isfinite(value):
            self.publish()  # such a step changes nothing, so the cause is still there
            raise loss_diverged(state, value, inputs, targets)
        if not wants_norms and state.clip_norm is None:
            return {}
        # JAX sorts dictionaries; the loss is at the end of the model's own order.
        layers = dict.fromkeys(name.rpartition(".")[0] for name in state.model.parameters)
        norms = {layer: float(metrics.gradient_norms[layer]) for layer in layers}
        for layer in reversed(norms):
            if not math.isfinite(norms[layer]):
                raise gradients_diverged(state, layer or "model")
        return norms if wants_norms else {}

    def publish(self) -> None:
        """Load model and optimizer; the next step begins from these again."""
        if self._placed is not None:
            load(self._state.model, self._placed, self._state.optimizer)
            self._placed = None
