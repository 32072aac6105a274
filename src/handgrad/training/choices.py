"""Losses, optimizers and steps by their names, as `Trainer` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from handgrad import kernels
from handgrad.data.ragged import Sequences
from handgrad.dispatch import get_engine
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.inference.preprocessing import STEPS, Preprocessor
from handgrad.losses import BY_NAME as LOSSES
from handgrad.losses import CrossEntropy, SquaredError
from handgrad.ops.arguments import check_choice
from handgrad.optimizers import BY_NAME as OPTIMIZERS
from handgrad.optimizers import Optimizer
from handgrad.training.metrics import Judge
from handgrad.training.training import Training
from handgrad.training.update import NumpyUpdate, Update

BACKENDS: Final = ("numpy", "jax")


def chosen_loss(loss: Any) -> Any:
    """The loss of a name; None where the targets choose it."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ArgumentError(f"Trainer: loss is {loss!r}; allowed: {', '.join(LOSSES)}")
        return LOSSES[loss]()
    if isinstance(loss, type):
        raise ArgumentError(
            f"Trainer: loss is the class {loss.__name__}; allowed: an object, {loss.__name__}()"
        )
    if loss is not None:
        Judge(loss)  # raises an error for one that gives no scalar
    return loss


def chosen_optimizer(optimizer: Any, lr: float | None) -> Optimizer:
    """The optimizer of a name, with its rate."""
    if isinstance(optimizer, Optimizer):
        if lr is not None:
            raise ArgumentError(
                f"Trainer: lr is {lr} beside an optimizer; allowed: with the name of one"
            )
        return optimizer
    if not isinstance(optimizer, str) or optimizer not in OPTIMIZERS:
        raise ArgumentError(
            f"Trainer: optimizer is {shown(optimizer)}; allowed: {', '.join(OPTIMIZERS)}, or an "
            "object such as hg.optimizers.Adam(lr=0.001)"
        )
    kind: Any = OPTIMIZERS[optimizer]
    return cast(Optimizer, kind() if lr is None else kind(lr))


def chosen_steps(
    steps: str | Preprocessor | Sequence[str | Preprocessor],
) -> tuple[str | Preprocessor, ...]:
    """The steps of preprocessing: "standardize", which is yet to be fitted, and those that are."""
    several: Any = (steps,) if isinstance(steps, str) or callable(steps) else steps
    for each in several:
        if each != "standardize" and not isinstance(each, tuple(STEPS.values())):
            raise ArgumentError(
                f"Trainer: preprocessing has {shown(each)}; allowed: 'standardize', or a step of "
                f"{', '.join(STEPS)} with its settings"
            )
    return tuple(several)


def chosen_callbacks(callbacks: Any) -> tuple[Any, ...]:
    """The callbacks, each an object with the methods of `Callback`."""
    several = callbacks if isinstance(callbacks, list | tuple) else (callbacks,)
    for each in several:
        if isinstance(each, type) or not hasattr(each, "on_start") or several is not callbacks:
            raise ArgumentError(
                f"Trainer: callbacks is {shown(callbacks)}; allowed: a list of callbacks; write "
                "callbacks=[hg.training.EarlyStopping(patience=3)]"
            )
    return tuple(several)


def chosen_augmentation(augment: Any) -> Any:
    """The augmentation, or None."""
    if augment is not None and (isinstance(augment, type) or not callable(augment)):
        raise ArgumentError(
            f"Trainer: augment is {shown(augment)}; allowed: an augmentation; write "
            "augment=hg.training.Shift(1)"
        )
    return augment


def check_backend(trainer: Training) -> None:
    """Raise ArgumentError unless the trainer's backend is there and can do what is asked of it."""
    check_choice("Trainer", "backend", trainer.backend, BACKENDS)
    if trainer.backend == "jax":
        try:
            from handgrad.training.on_jax import check_devices
        except ModuleNotFoundError as error:
            if error.name != "jax":
                raise
            raise ArgumentError(
                "Trainer: backend is 'jax' and JAX is missing; allowed once it is installed: "
                "pip install 'handgrad[jax]'"
            ) from None
        check_devices(trainer.devices)
        for name in ("accumulate", "parts"):
            if getattr(trainer, name) > 1:
                raise ArgumentError(
                    f"Trainer: {name} is {getattr(trainer, name)}; allowed with backend 'jax': 1, "
                    "because a large batch is divided among devices"
                )
        if trainer.sync_batch_norm:
            raise ArgumentError(
                "Trainer: sync_batch_norm is True; allowed with backend 'jax': False, because its "
                "statistics are always those of the whole batch"
            )
    elif trainer.devices > 1:
        raise ArgumentError(
            f"Trainer: devices is {trainer.devices}; allowed with backend 'numpy': 1"
        )


def chosen_update(
    trainer: Training, optimizer: Optimizer, augmenting: np.random.Generator
) -> Update:
    """The update of the trainer's backend; `optimizer` is that of all its replicas."""
    if trainer.backend == "jax":
        from handgrad.training.on_jax import JaxUpdate

        return JaxUpdate(trainer, augmenting)
    return NumpyUpdate(trainer, optimizer, augmenting)


def engine_of(trainer: Training) -> str:
    """The engine that does the work: "kernels (x86-64-v4)", "reference" or "jax (cpu)"."""
    if trainer.backend == "jax":
        from handgrad.training.on_jax import platform

        count = f", {trainer.devices} devices" if trainer.devices > 1 else ""
        return f"jax ({platform()}{count})"
    return engine_name()


def engine_name() -> str:
    """handgrad's own engine: "kernels (x86-64-v4)" or "reference"."""
    if get_engine() == "reference" or kernels.native is None:
        return "reference"
    return f"kernels ({kernels.instruction_set})"


def default_loss(targets: Any) -> Any:
    """Squared error for floats; cross-entropy for classes, of every step where there are more."""
    is_tags = isinstance(targets, Sequences) or targets.ndim > 1
    values = targets.values if isinstance(targets, Sequences) else targets
    return SquaredError() if values.dtype.kind == "f" else CrossEntropy(class_axis=1 - 2 * is_tags)
