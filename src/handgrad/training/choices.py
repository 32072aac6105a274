"""Losses, optimizers and steps by their names, as `Trainer` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from handgrad import kernels
from handgrad.data.ragged import Sequences
from handgrad.dispatch import get_engine
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.inference.preprocessing import STEPS, Preprocessor
from handgrad.losses import BY_NAME as LOSSES
from handgrad.losses import CrossEntropy, SquaredError
from handgrad.optimizers import BY_NAME as OPTIMIZERS
from handgrad.optimizers import Optimizer
from handgrad.training.metrics import Judge
from handgrad.training.settings import TrainSettings


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


def check_augmentation(augment: Any) -> None:
    """Raise ArgumentError unless it is an augmentation, or None."""
    if augment is not None and (isinstance(augment, type) or not callable(augment)):
        raise ArgumentError(
            f"Trainer: augment is {shown(augment)}; allowed: an augmentation; write "
            "augment=hg.training.Shift(1)"
        )


def engine_of(settings: TrainSettings) -> str:
    """The engine that does the work: "kernels (x86-64-v4)", "reference" or "jax (cpu)"."""
    if settings.backend == "jax":
        from handgrad.training.devices import platform

        count = f", {settings.devices} devices" if settings.devices > 1 else ""
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
