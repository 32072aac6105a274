"""Two descriptions of a training, and whether a checkpoint is one of the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.errors import RunError
from handgrad.escaping import cut
from handgrad.io.identity import (
    compare,
    describe_data,
    describe_settings,
    shown,
)
from handgrad.training.checkpoint import CheckpointState
from handgrad.training.folder import Run
from handgrad.training.moving import describe_training, is_compared, is_restored
from handgrad.training.state import TrainState

if TYPE_CHECKING:
    from handgrad.data.sources import Source

#: Settings that a run may change when it is resumed, by the start of their path in the identity.
_CHANGEABLE: Final = ("optimizer.lr", "optimizer.hyperparameters.", "schedule", "clip_norm")
#: Allowed values of settings whose type does not say all.
_ALLOWED: Final = {"optimizer.lr": "0 or more", "clip_norm": "a positive number or none"}
#: The types of NumPy of which a checkpoint keeps single numbers, with the largest that they hold.
_LARGEST: Final = {
    **{name: float(np.finfo(name).max) for name in ("float16", "float32", "float64")},
    **{name: int(np.iinfo(name).max) for name in ("int32", "int64")},
}


def identity_of(state: TrainState, source: Source, validation: Source | None) -> dict[str, Any]:
    """Everything that decides the numbers, as `identity` describes it."""
    unit = kernels.native.bf16_unit if kernels.native is not None else "none"
    # A checkpoint has no frozen parameters, so their content is part of the identity.
    frozen = describe_settings(dict(state.model.frozen_parameters))
    return {
        **describe_training(state)[0],
        "precision": f"bf16 by {unit}" if state.precision == "bf16" else state.precision,
        **({"frozen": frozen} if frozen else {}),
        "examples": len(source),
        "data": {"train": describe_data(source), "validation": describe_data(validation)},
    }


def settings_of(state: TrainState) -> dict[str, Any]:
    """The settings that a callback may change while a run goes on, by their paths in the identity.

    They are the optimizer's public attributes that are single values or tables of such, and
    `clip_norm`. The identity has those that the run began with.
    """
    found: dict[str, Any] = {}
    for name, value in vars(state.optimizer).items():
        if not name.startswith("_") and name != "steps":
            parts = value.items() if isinstance(value, dict) else [("", value)]
            found |= {f"optimizer.{name}.{key}".rstrip("."): part for key, part in parts}
    found["clip_norm"] = state.clip_norm
    return {path: _saved(value) for path, value in found.items() if _is_plain(_saved(value))}


def _saved(value: Any) -> Any:
    """A value for JSON; a number of NumPy with its type, in which a callback goes on to compute."""
    if isinstance(value, np.number) and value.dtype.name in _LARGEST:
        return {"dtype": value.dtype.name, "value": value.item()}
    return value


def _restored(value: Any) -> Any:
    return np.dtype(value["dtype"]).type(value["value"]) if isinstance(value, dict) else value


def _is_plain(value: Any) -> bool:
    """Return whether a value says all and JSON has it, as it has no infinite numbers."""
    match value:
        case {"dtype": str(dtype), "value": int() | float() as number, **more}:
            fits = dtype.startswith("float") or isinstance(number, int)
            return not more and fits and abs(number) <= _LARGEST.get(dtype, -1)
        case int() | float():
            return abs(value) <= _LARGEST["float64"]
    return isinstance(value, str | None)


def check_settings(state: TrainState, run: Run, settings: Mapping[str, Any]) -> None:
    """Raise RunError unless these are settings that this training may have come to."""
    own = settings_of(state)
    for path in dict.fromkeys((*own, *settings)):
        if path not in own or path not in settings:
            what = "missing" if path in own else "unknown"
            raise RunError(
                f"{run.checkpoint}: settings.{cut(path)} is {what}; allowed: {', '.join(own)}"
            )
        if _is_plain(settings[path]) and _fits(path, _restored(settings[path]), own[path]):
            continue
        allowed = _ALLOWED.get(path, f"such as {shown(own[path])}")
        raise RunError(
            f"{run.checkpoint}: settings.{cut(path)} is {shown(settings[path])}; allowed: {allowed}"
        )


def _fits(path: str, value: Any, own: Any) -> bool:
    """Return whether a training that has `own` may come to this value."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    match path:
        case "optimizer.lr":
            return is_number and value >= 0
        case "clip_norm":
            return value is None or (is_number and value > 0)
    if is_number:
        return not isinstance(own, bool | str)
    return type(value) is type(own)


def restore_settings(state: TrainState, settings: Mapping[str, Any]) -> None:
    """Set what `settings_of` had of a training."""
    for path, value in settings.items():
        owner, _, name = path.partition(".")
        name, _, key = name.partition(".")
        if owner == "clip_norm":
            state.clip_norm = _restored(value)
        elif key:
            getattr(state.optimizer, name)[key] = _restored(value)
        else:
            setattr(state.optimizer, name, _restored(value))


def changed_settings(
    run: Run, saved: CheckpointState, identity: dict[str, Any], may_change: bool
) -> dict[str, list[Any]]:
    """The differences from the checkpoint: path, saved value and new value.

    Raises RunError for the first difference that is not one made on purpose.
    """
    found: dict[str, list[Any]] = {}
    for path, was, now in compare(saved.identity, identity):
        if not is_compared(path) or is_restored(path, saved.moved["kept"]):
            continue
        # Kernels and references differ as little as backends, but only the latter are chosen.
        changeable = path.startswith(_CHANGEABLE) or (path == "engine" and "jax (" in f"{was}{now}")
        if changeable and may_change:
            found[path] = [was, now]
            continue
        hint = f"; to change it on purpose: {run.change_command}" if changeable else ""
        raise RunError(
            f"{run.folder}: {path} is {shown(now)}; allowed: {shown(was)}, as in the "
            f"checkpoint{hint.format(lr='...')}"
        )
    return found


def check_arrays(
    state: TrainState, run: Run, arrays: Mapping[str, Array], saved: CheckpointState
) -> None:
    """Raise RunError unless the arrays of a checkpoint are exactly those this training has."""
    expected = {f"model.{name}": array for name, array in state.model_arrays().items()}
    expected["optimizer.step"] = np.zeros((), np.int64)
    if any(name.startswith("optimizer.") and name != "optimizer.step" for name in arrays):
        for slot in state.optimizer.slots:
            for name, array in state.parameters.items():
                expected[f"optimizer.{slot}.{name}"] = array
    others = tuple(f"callback{i}." for i in range(len(state.callbacks)))
    names = [name for name in arrays if not name.startswith((*others, "moved"))]
    for name in dict.fromkeys((*expected, *names)):
        forms = [
            f"{each[name].dtype} {each[name].shape}" if name in each else "missing"
            for each in (arrays, expected)
        ]
        if forms[0] != forms[1]:
            raise RunError(
                f"{run.checkpoint} does not fit {run.config}: {name} is {forms[0]}; expected "
                f"{forms[1]}"
            )
    models = saved.generators["model"]
    if set(models) != set(state.model.generators) or len(saved.callbacks) != len(others):
        raise RunError(
            f"{run.checkpoint} does not fit {run.config}: it is of a model with the generators "
            f"{sorted(models)} and of {len(saved.callbacks)} callbacks; expected "
            f"{sorted(state.model.generators)} and {len(others)}"
        )
