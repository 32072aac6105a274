"""The settings of a training: what `hg.Trainer` takes beside model, loss and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handgrad import dispatch
from handgrad.errors import ArgumentError
from handgrad.inference.preprocessing import Preprocessor
from handgrad.layers.base import Layer
from handgrad.losses import Loss
from handgrad.ops.arguments import check_choice
from handgrad.optimizers import Optimizer
from handgrad.training.augmentation import Augmentation
from handgrad.training.callbacks import Callback
from handgrad.training.folder import Run
from handgrad.training.replicas import ALONE, Replicas

BACKENDS: Final = ("numpy", "jax")

#: Settings that are integers from 1, or None.
_COUNTS: Final = (
    "accumulate",
    "batch_size",
    "devices",
    "checkpoint_steps",
    "evaluation_batch",
    "norms_every",
    "parts",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainSettings:
    """The settings as they were given; `hg.Trainer` says what they mean."""

    lr: float | None = None
    preprocessing: str | Preprocessor | Sequence[str | Preprocessor] = ()
    about: Mapping[str, object] | None = None
    schedule: Callable[[int], float] | None = None
    clip_norm: float | None = None
    accumulate: int = 1
    batch_size: int = 64
    parts: int = 1
    exact: bool = False
    sync_batch_norm: bool = False
    replicas: Replicas = ALONE
    seed: int = 0
    callbacks: Sequence[Callback] = ()
    out: str | Path | Run | None = None
    augment: Augmentation | None = None
    precision: str | None = None
    backend: str = "numpy"
    devices: int = 1
    checkpoint_every: float = 30.0
    checkpoint_steps: int | None = None
    evaluation_batch: int = 256
    norms_every: int | None = None
    progress: str = "auto"

    def check(self) -> None:
        """Raise ArgumentError where a value is impossible, or two are together."""
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ArgumentError(f"Trainer: {name} is {value}; allowed: an integer from 1")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ArgumentError(
                f"Trainer: clip_norm is {self.clip_norm}; allowed: a positive number"
            )
        _check_parts(self)
        if self.precision is not None:
            dispatch.check_precision(self.precision, "Trainer: precision")
        check_choice("Trainer", "backend", self.backend, BACKENDS)
        if self.backend == "jax":
            _check_jax(self)
        elif self.devices > 1:
            raise ArgumentError(
                f"Trainer: devices is {self.devices}; allowed with backend 'numpy': 1"
            )


@dataclass(frozen=True, eq=False)
class TrainArguments(TrainSettings):
    """All that `hg.Trainer` takes; its constructor is made of these fields."""

    model: Layer
    loss: Loss | str | None = None
    optimizer: Optimizer | str = "adam"

    def __post_init__(self) -> None:
        self.check()


def _check_parts(settings: TrainSettings) -> None:
    """Raise ArgumentError unless every rank has a part, in a way in which it can be computed."""
    if settings.parts < settings.replicas.size:
        raise ArgumentError(
            f"Trainer: parts is {settings.parts} with {settings.replicas.size} ranks; allowed: as "
            "many parts as ranks or more, and the same whenever the run is resumed"
        )
    if settings.exact and settings.sync_batch_norm:
        raise ArgumentError(
            "Trainer: exact together with sync_batch_norm; allowed: one of them, because sums of "
            "statistics over all ranks have another order on every number of them"
        )


def _check_jax(settings: TrainSettings) -> None:
    """Raise ArgumentError unless JAX is there and can do what is asked of it."""
    try:
        from handgrad.training.devices import check_devices
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise ArgumentError(
            "Trainer: backend is 'jax' and JAX is missing; allowed once it is installed: "
            "pip install 'handgrad[jax]'"
        ) from None
    check_devices(settings.devices)
    for name in ("accumulate", "parts"):
        if getattr(settings, name) > 1:
            raise ArgumentError(
                f"Trainer: {name} is {getattr(settings, name)}; allowed with backend 'jax': 1, "
                "because a large batch is divided among devices"
            )
    if settings.sync_batch_norm:
        raise ArgumentError(
            "Trainer: sync_batch_norm is True; allowed with backend 'jax': False, because its "
            "statistics are always those of the whole batch"
        )
