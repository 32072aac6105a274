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
from handgrad.errors import ArgumentError
from handgrad.jax.sharding import shard, share
from handgrad.jax.state import State, drawn_keys, init, load
from handgrad.jax.stepping import step
from handgrad.training.gradients import batch_at, loss_diverged
from handgrad.training.metrics import Judge, Sums
from handgrad.training.training import Training

#: Every shape of a batch is compiled, so sequences are padded to lengths that come again.
PADDING: Final = 16


def platform() -> str:
    """The platform of JAX's devices: cpu, gpu or tpu."""
    return str(jax.default_backend())


def check_devices(count: int) -> None:
    """Raise ArgumentError unless JAX has so many devices."""
    found = len(jax.devices())
    if count > found:
        flag = f"XLA_FLAGS=--xla_force_host_platform_device_count={count}"
        hint = f"; {flag} makes that many of a CPU" if platform() == "cpu" else ""
        raise ArgumentError(
            f"Trainer: devices is {count}; allowed: 1 to {found}, the {platform()} devices that "
            f"JAX has{hint}"
        )


class JaxUpdate:
    """The update as a compiled step, on a state that stays on the devices until it is published.

    The model's generators give every step its keys, so a checkpoint has all that resuming takes.
    """

    def __init__(self, trainer: Training, augmenting: np.random.Generator) -> None:
        self._trainer = trainer
        self._augmenting = augmenting
        self._judge = Judge(trainer.loss)
        self._mesh = Mesh(np.array(jax.devices()[: trainer.devices]), ("data",))
        self._state: State | None = None

    @cached_property
    def _step(self) -> Any:
        trainer = self._trainer
        pure = step(
            trainer.model,
            trainer.loss,
            trainer.optimizer,
            clip_norm=trainer.clip_norm,
            measure=self._judge.predicted,
        )
        places = jax.tree.map(lambda array: array.sharding, self._state)
        return jax.jit(pure, out_shardings=(places, None), donate_argnums=0)

    def __call__(
        self, source: Source, index: Array, sums: Sums, rate: float, *, wants_norms: bool
    ) -> dict[str, float]:
        trainer = self._trainer
        with padded_to(PADDING):
            inputs, targets = batch_at(trainer, source, index, self._augmenting)
        if self._state is None:
            self._state = shard(init(trainer.model, trainer.optimizer), self._mesh, {})
        state = self._state._replace(
            learning_rate=np.asarray(rate, dtype=trainer.parameters.buffer.dtype),
            keys=drawn_keys(trainer.model.generators),
        )
        self._state, metrics = self._step(state, share((inputs, targets), self._mesh))
        value = float(metrics.loss)
        predicted = None if metrics.measured is None else np.asarray(metrics.measured)
        self._judge.count_predicted(sums, value, predicted, targets)
        if not math.isfinite(value):
            self.publish()  # such a step changes nothing, so the cause is still there
            raise loss_diverged(trainer, value, inputs, targets)
        if not wants_norms and trainer.clip_norm is None:
            return {}
        # JAX sorts dictionaries; the loss is at the end of the model's own order.
        layers = dict.fromkeys(name.rpartition(".")[0] for name in trainer.model.parameters)
        norms = {layer: float(metrics.gradient_norms[layer]) for layer in layers}
        for layer in reversed(norms):
            if not math.isfinite(norms[layer]):
                raise trainer.gradients_diverged(layer or "model")
        return norms if wants_norms else {}

    def publish(self) -> None:
        """Load model and optimizer; the next step begins from these again."""
        if self._state is not None:
            load(self._trainer.model, self._state, self._trainer.optimizer)
            self._state = None
