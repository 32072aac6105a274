"""What callbacks, schedules and the user's other code change while a run goes on.

The description of a training is made again for each checkpoint and compared with the one that the
run began with. What differs is kept in the checkpoint, where it has a form there, and put back when
the run is resumed; of what has none the checkpoint says so, and the run cannot be resumed.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import HandgradError, HandgradWarning, RunError
from handgrad.io.describing import Describer, is_setting
from handgrad.io.identity import differences, shown
from handgrad.layers.base import walk
from handgrad.training.choices import engine_of
from handgrad.training.values import UnkeptError, decoded, encoded, put

if TYPE_CHECKING:
    from handgrad.training.state import TrainState

#: Those of a trainer's own settings that take effect whenever they are changed.
_LIVE: Final = ("batch_size", "accumulate", "evaluation_batch", "schedule")
#: Those that the step of a training was made for.
_BOUND: Final = ("model", "loss", "optimizer")
#: Those that a checkpoint has among its settings.
_SETTINGS: Final = ("optimizer.lr", "optimizer.hyperparameters", "clip_norm")


def describe_training(state: TrainState) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decides the numbers beside the data, and the places of its values by path."""
    layers = {name or type(layer).__name__: layer for name, layer in walk(state.model)}
    describe = Describer([*layers.values()], remembers=True)
    describe.know(state, state.optimizer, state.loss, state.schedule, state.augment)
    describe.know(*layers.values(), *state.callbacks)
    describe.places |= {"": vars(state), "memory": Streams()}
    optimizer = describe.root(state.optimizer, "optimizer")
    optimizer.pop("steps", None)
    for name in ("_slots", "_swept", "_sweeps"):  # its state, of which checkpoints have the arrays
        optimizer.get("memory", {}).pop(name, None)
    names = ("parts", "exact", "sync_batch_norm")
    cut = {} if state.parts == 1 else {name: getattr(state, name) for name in names}
    found = {
        "seed": state.seed,
        "batch_size": state.batch_size,
        "accumulate": state.accumulate,
        **cut,
        "clip_norm": state.clip_norm,
        "evaluation_batch": state.evaluation_batch,
        "engine": engine_of(state),
        "model": {
            name: describe.layer(layer, f"model.{name}")
            for name, layer in (
                (name or type(each).__name__, each) for name, each in layers.items()
            )
        },
        "loss": describe.root(state.loss, "loss"),
        "optimizer": optimizer,
        "schedule": describe.root(state.schedule, "schedule"),
        "augment": describe.root(state.augment, "augment"),
        "callbacks": [
            describe.callback(callback, f"callbacks[{i}]")
            for i, callback in enumerate(state.callbacks)
        ],
        "memory": {name: describe(repr(state).encode()) for name, state in Streams().items()},
    }
    return found, describe.places


def is_compared(path: str) -> bool:
    """Return whether a value of a description has to be the same when a run is resumed."""
    return "memory" not in path.split(".")


def is_restored(path: str, kept: Mapping[str, Any]) -> bool:
    """Return whether a value comes from the checkpoint, whatever it is before.

    These are generators, and what belongs to code and callbacks, which change it as they run.
    """
    around = path.startswith("callbacks[") or ".globals." in path or ".closure." in path
    for whole, value in kept.items():
        if path == whole or path.startswith((f"{whole}.", f"{whole}[")):
            return around or (isinstance(value, dict) and "generator" in value)
    return False


class Moving:
    """What a trainer's run has changed since it began with the description `begin`.

    A checkpoint's table of it has the values that are `kept`, and a few words on those that are
    `lost`, by path.
    """

    def __init__(self, state: TrainState, begin: Mapping[str, Any]) -> None:
        self._state = state
        self._begin = begin
        self._parts = {name: getattr(state, name) for name in _BOUND}
        self._before: tuple[str, ...] = ()
        self._lost: dict[str, str] = {}

    def table(self, arrays: dict[str, Array], sizes: Mapping[str, int]) -> dict[str, Any]:
        """The table for a checkpoint, whose arrays are put into `arrays`.

        sizes: of the batches, as an epoch began with them that is not at its end.
        """
        now, places = describe_training(self._state)
        begin = {name: self._begin.get(name) for name in now}
        moved = {path: value for path, _, value in _leaves(differences(begin, now))}
        kept: dict[str, Any] = {}
        lost = {
            name: f"another {type(found).__name__}"
            for name, part in self._parts.items()
            if (found := getattr(self._state, name)) is not part
        }
        for path, value in {**dict.fromkeys(self._before), **moved}.items():
            whole, place, name = _find(places, path)
            if whole in kept or whole in lost or whole.startswith(_SETTINGS):
                continue
            try:
                if place is None or (whole in sizes and sizes[whole] != place[name]):
                    raise UnkeptError
                kept[whole] = encoded(place[name], arrays)
            except UnkeptError:
                told = not is_compared(whole) and whole in places  # its attributes are kept
                if not told and (place is None or is_compared(whole) or is_setting(place[name])):
                    lost[whole] = shown(value)
        self._before = tuple(kept)
        if lost and lost != self._lost:
            warnings.warn(
                f"training: the run has changed {', '.join(lost)}, which a checkpoint has no form "
                "for, so it cannot be resumed; expected plain values and arrays",
                HandgradWarning,
                stacklevel=2,
            )
        self._lost = lost
        return {"kept": kept, "lost": lost}

    def restore(
        self, found: Mapping[str, Any], arrays: Mapping[str, Array], *, begun: bool
    ) -> None:
        """Put back what a checkpoint's table has.

        Before the callbacks have `begun`, some of them lack attributes that they make then. Raises
        RunError for what was lost, and what has no place in this training.
        """
        for path, words in found["lost"].items():
            raise RunError(
                f"checkpoint: the run had changed {path} to {words}, for which it has no form; "
                "allowed: changes to plain values and arrays, and what a callback's state() returns"
            )
        _, places = describe_training(self._state) if found["kept"] else ({}, {})
        for path, value in found["kept"].items():
            whole, place, name = _find(places, path, new=True)
            if place is None or whole != path:
                if begun:
                    raise RunError(
                        f"checkpoint: the run had changed {path}, which this training does not "
                        "have; expected the same objects as it had"
                    )
                continue
            try:
                put(place, name, decoded(value, arrays))
            except HandgradError:
                raise
            except Exception as error:
                raise RunError(
                    f"checkpoint: {path} is damaged ({type(error).__name__}); expected what the "
                    "run wrote"
                ) from None
        self._before = tuple(found["kept"])


def _leaves(found: Iterable[tuple[str, Any, Any]]) -> Iterator[tuple[str, Any, Any]]:
    """Differences down to the attributes of an object that there was none of."""
    for path, was, now in found:
        if was is None and isinstance(now, dict) and not is_compared(path):
            own = {name: value for name, value in now.items() if name not in ("type", "code")}
            yield from _leaves(differences({}, own, path))
        else:
            yield path, was, now


def _find(
    places: Mapping[str, Any], path: str, *, new: bool = False
) -> tuple[str, MutableMapping[str, Any] | None, str]:
    """The whole value that a path is in: its path, the place that it stands in and its name there.

    The place is None where there is none. new: whether the place may not have it yet.
    """
    for prefix in sorted(places, key=len, reverse=True):
        start = f"{prefix}." if prefix else ""
        if not path.startswith(start):
            continue
        rest = path[len(start) :]
        if not start and rest.partition(".")[0] not in _LIVE:
            continue
        place = places[prefix]
        for name in sorted(place, key=len, reverse=True):
            if rest == name or rest.startswith((f"{name}.", f"{name}[")):
                return start + name, place, name
        if new and rest.isidentifier():
            return path, place, rest
    return path, None, ""


class Streams(MutableMapping[str, Any]):
    """The random numbers of Python and NumPy that belong to no generator of one's own."""

    def __getitem__(self, name: str) -> Any:
        return random.getstate() if name == "random" else np.random.get_state()  # noqa: NPY002

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "random":
            random.setstate(value)
        else:
            np.random.set_state(value)  # noqa: NPY002

    def __delitem__(self, name: str) -> None:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("random", "numpy"))

    def __len__(self) -> int:
        return 2
