"""A training begins, or goes on from its last checkpoint, with the changes that are meant."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from handgrad.arrays import Array
from handgrad.data.files import shortened
from handgrad.errors import HandgradError, HandgradWarning, RunError
from handgrad.io.checkpoint import generator_state, restore_generator, under
from handgrad.io.files import description
from handgrad.io.identity import shown
from handgrad.training.checkpoint import CheckpointState
from handgrad.training.continuing import (
    changed_settings,
    check_arrays,
    check_settings,
    restore_settings,
)
from handgrad.training.folder import Run
from handgrad.training.saving import TrainSession

#: The arrays of a checkpoint, and the rest of it.
Saved = tuple[dict[str, Array], CheckpointState]


def begin(
    session: TrainSession, run: Run, *, resumes: bool, change: bool
) -> tuple[Saved | None, bool]:
    """Begin a run, or continue from its last checkpoint, if it has one, with changes.

    Returns that checkpoint, and whether anything was changed.

    Changed settings go into config.toml before there is a checkpoint with them, so that a
    process killed in between is resumed with them: a config.toml that is not the checkpoint's
    allows the same changes.
    """
    state = session.state
    run.description = description(state.trained)
    found = run.load() if resumes else None
    saved: Saved | None = None
    changes: dict[str, Any] = {}
    if found is not None:
        arrays, known = found[0], CheckpointState.read(run.checkpoint, found[1])
        may_change = change or known.config != run.config_checksum
        changes = changed_settings(run, known, session.identity, may_change)
        check_settings(state, run, known.settings)
        check_arrays(state, run, arrays, known)
        # Another value that is meant goes before the one that a callback had come to.
        kept = {path: value for path, value in known.settings.items() if path not in changes}
        saved = arrays, replace(known, settings=kept)
        _check_epochs(run, session.epochs, known, change)
        _restore(session, *saved)
        if state.epoch < session.epochs and not state.stop:
            run.reopen()
        state.history.epochs = [line for line in run.records() if line["kind"] == "epoch"]
    if change:
        described = ", ".join(f"{path} = {shown(now)}" for path, (_, now) in changes.items())
        run.change_config(f"after step {state.step}: {run.changes or described or 'nothing'}")
    if run.changes and "schedule" not in run.changes:
        _warn_of_schedule(run, state.step, changes)
    if changes:
        run.log({"kind": "change", "step": state.step, "changes": changes})
    changed = bool(change or changes)
    if saved is not None and not changed:
        # The process may have been killed between checkpoint and table.
        run.save_table(state.history.epochs)
    return saved, changed


def follow(session: TrainSession, saved: Saved | None) -> Saved | None:
    """Begin on every rank as on rank 0, which alone has read the checkpoint; returns that."""
    state = session.state
    if state.replicas.size == 1:
        return saved
    first = state.model_arrays() if saved is None else None
    first, saved, epochs = state.replicas.share((first, saved, state.history.epochs))
    if state.replicas.rank > 0:
        if saved is None:
            state.load_model_arrays(first)
        else:
            _restore(session, *saved)
        state.history.epochs = epochs
    found: Saved | None = saved
    return found


def put_back(
    session: TrainSession,
    arrays: Mapping[str, Array],
    saved: CheckpointState,
    *,
    begun: bool = True,
) -> None:
    """Put back what callbacks can change, and may have as they have `begun`."""
    state = session.state
    session.moving.restore(saved.moved, arrays, begun=begun)
    state.load_model_arrays(under("model.", arrays))
    restore_settings(state, saved.settings)
    session.optimizer.load_state(under("optimizer.", arrays))
    restore_generator(state.shuffling, saved.generators["shuffling"])
    restore_generator(state.augmenting, saved.generators["augmenting"])
    for name, generator in state.model.generators.items():
        restore_generator(generator, saved.generators["model"][name])


def _restore(session: TrainSession, arrays: Mapping[str, Array], saved: CheckpointState) -> None:
    """Continue from what a checkpoint of this training has."""
    state = session.state
    put_back(session, arrays, saved, begun=False)
    for i, callback in enumerate(state.callbacks):
        try:
            callback.restore(saved.callbacks[i], under(f"callback{i}.", arrays))
        except HandgradError:
            raise
        except Exception as error:  # of whoever wrote the callback
            raise RunError(
                f"checkpoint: the state of {type(callback).__name__} is damaged "
                f"({type(error).__name__}: {shortened(error)}); expected what its state() returned"
            ) from error
    state.shuffling_before = generator_state(state.shuffling)
    for name in ("epoch", "position", "step", "stop", "seconds", "sums"):
        setattr(state, name, getattr(saved, name))


def _check_epochs(run: Run, epochs: int, saved: CheckpointState, change: bool) -> None:
    """Raise RunError where the run has come further than it is to go, or goes no further."""
    reached = saved.epoch + (saved.position > 0)
    if reached > epochs:
        raise RunError(
            f"{run.folder}: epochs is {epochs}; allowed: {reached} or more, which the run has "
            "reached"
        )
    if change and saved.stop and run.finished:
        raise RunError(
            f"{run.folder}: early stopping, or another callback, ended the run after epoch "
            f"{saved.epoch}; allowed: no more epochs"
        )


def _warn_of_schedule(run: Run, step: int, changes: Mapping[str, Any]) -> None:
    """Say that other epochs are another schedule, which no uninterrupted run would have."""
    for path, (was, now) in changes.items():
        if path.startswith("schedule"):
            warnings.warn(
                f"{run.folder}: {path} is {shown(now)} from step {step} on, and was "
                f"{shown(was)}, because the schedule goes over all epochs; expected other "
                "numbers than those of a run that was not interrupted",
                HandgradWarning,
                stacklevel=2,
            )
            return
