"""The training loop: steps, in epochs, up to the end of a call of `fit`."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, RunError
from handgrad.io.checkpoint import generator_state
from handgrad.training.callbacks import Callback
from handgrad.training.continuing import identity_of
from handgrad.training.fitting import Fitting
from handgrad.training.metrics import Sums, evaluate
from handgrad.training.moving import Moving
from handgrad.training.progress import Display, DisplayError, display_for
from handgrad.training.resuming import begin, follow, put_back
from handgrad.training.saving import (
    TrainSession,
    agreed,
    check_weights,
    is_worth_saving,
    leave,
    save,
)
from handgrad.training.state import TrainState
from handgrad.training.synchronized import synchronize
from handgrad.training.update import chosen_update

#: A run's gradient norms are recorded about this many times, enough for a smooth curve.
_NORM_RECORDS: Final = 200


def fit_epochs(
    state: TrainState, data: Fitting, epochs: int, *, resumes: bool, change: bool
) -> None:
    """Train up to so many epochs, from the start or from the last checkpoint of `state.run`."""
    run, replicas = state.run, state.replicas
    session = _session(state, data, epochs)
    is_kept = bool(replicas.agree(run is not None)[0])
    saved, changed = None, False
    if run is not None:
        saved, changed = begin(session, run, resumes=resumes, change=change)
    begins = replicas.agree(run is not None and (saved is None or changed))[0]
    saved = follow(session, saved)
    if begins:
        save(session)
    if run is not None:
        replicas.announce(run.resume_command)
    for callback in state.callbacks:
        callback.on_start(state)
    if saved is not None and state.step > 0:  # before the first step it has begun nothing
        put_back(session, *saved)

    steps = math.ceil(len(data.train) / (state.batch_size * state.accumulate)) * epochs
    session.norms_every = state.norms_every or max(1, steps // _NORM_RECORDS)
    display = display_for(state.progress if replicas.rank == 0 else "off", epochs)
    try:
        with session.interrupt if is_kept else nullcontext():
            while state.epoch < epochs and not state.stop:
                run_epoch(session, display)
    except DisplayError as error:
        if run is None or replicas.size > 1:  # the others do not know of it
            raise
        save(session)
        raise RunError(f"{error}; saved. Continue with: {run.resume_command}") from None
    finally:
        display.close()
    for callback in state.callbacks:
        callback.on_end(state)
    if run is not None:
        run.save_model({**state.model.parameters, **state.model.buffers})


def _session(state: TrainState, data: Fitting, epochs: int) -> TrainSession:
    """Make what moves the state, and set it to its start."""
    identity = {} if state.run is None else identity_of(state, data.train, data.validation)
    state.parameters = state.model.bind()
    if state.sync_batch_norm:
        synchronize(state.model, state.replicas)
    optimizer = state.replicas.updater(state.optimizer, state.parameters)
    update = chosen_update(state, optimizer)
    state.begin()
    return TrainSession(
        state=state,
        epochs=epochs,
        source=data.train,
        validation=data.validation,
        identity=identity,
        optimizer=optimizer,
        update=update,
        moving=Moving(state, identity),
    )


def run_epoch(session: TrainSession, display: Display) -> None:
    """One pass over the data from where `position` says, and what follows it."""
    state, run = session.state, session.state.run
    began, seconds_before, first = time.perf_counter(), state.seconds, state.position
    state.shuffling_before = generator_state(state.shuffling)
    state.epoch_sizes = {"batch_size": state.batch_size, "accumulate": state.accumulate}
    order = session.source.order(state.batch_size, state.shuffling)
    if first > len(order):
        raise RunError(
            f"{run.checkpoint if run else 'checkpoint'}: position is {first}; "
            f"allowed: 0 to {len(order)}, the examples of an epoch"
        )
    display.start(state.epoch, first, len(order))
    _run_steps(session, display, order, began)
    check_weights(session)
    pace = (len(order) - first) / max(time.perf_counter() - began, 1e-9)
    record = _epoch_record(session, pace)
    state.seconds = seconds_before + time.perf_counter() - began
    record["seconds"] = round(state.seconds, 3)
    state.epoch += 1
    state.position = 0
    state.sums = Sums()
    state.history.epochs.append(record)
    for callback in state.callbacks:
        callback.on_epoch(state, record)
    state.shuffling_before = generator_state(state.shuffling)
    if run is not None:
        run.log(record)
    last = state.stop or state.epoch == session.epochs
    if agreed(session, run is not None and (last or is_worth_saving(session))):
        save(session)
    display.end_epoch(record)
    if session.interrupt.asked and not last:
        leave(session)


def _run_steps(session: TrainSession, display: Display, order: Array, began: float) -> None:
    """The steps of an epoch from `position` on, with the checkpoints between them."""
    state, run = session.state, session.state.run
    seconds_before = state.seconds
    group = state.batch_size * state.accumulate
    watchers = [each for each in state.callbacks if type(each).on_step is not Callback.on_step]
    checkpoint_due = math.inf if run is None else began + state.checkpoint_every
    while state.position < len(order):
        take_step(session, order[state.position : state.position + group])
        if watchers:
            session.update.publish()
        for callback in watchers:
            callback.on_step(state)
        now = time.perf_counter()
        if now >= display.due:
            display.update(now, state.position, state.sums.mean_loss, state.sums.accuracy)
        every = state.checkpoint_steps
        due = now >= checkpoint_due or (every is not None and state.step % every == 0)
        if agreed(session, (run is not None and due) or session.interrupt.asked > 0):
            state.seconds = seconds_before + now - began
            if session.interrupt.asked and state.position < len(order):
                leave(session)
            save(session)
            checkpoint_due = time.perf_counter() + state.checkpoint_every


def take_step(session: TrainSession, index: Array) -> None:
    """One step of the optimizer, by the gradients of the examples at `index`."""
    state, run = session.state, session.state.run
    rate = _learning_rate(state, state.step)
    wants_norms = run is not None and state.step % session.norms_every == 0
    norms = session.update(session.source, index, state.sums, rate, wants_norms=wants_norms)
    if run is not None and norms:
        run.log({"kind": "gradients", "step": state.step, "norms": norms})
    state.step += 1
    state.position += len(index)


def _epoch_record(session: TrainSession, pace: float) -> dict[str, Any]:
    """The measurements of an epoch, for the history and metrics.jsonl."""
    state = session.state
    record: dict[str, Any] = {
        "kind": "epoch",
        "epoch": state.epoch + 1,
        "step": state.step,
        "loss": state.sums.mean_loss,
        "accuracy": state.sums.accuracy,
    }
    if session.validation is not None:
        judged = evaluate(
            state.model,
            state.loss,
            session.validation,
            state.evaluation_batch,
            replicas=state.replicas,
        )
        record["validation_loss"] = judged.loss
        record["validation_accuracy"] = judged.accuracy
    record["learning_rate"] = float(_learning_rate(state, state.step - 1))
    record["examples_per_second"] = round(pace, 1)
    return record


def _learning_rate(state: TrainState, step: int) -> float:
    if state.schedule is None:
        return state.optimizer.lr
    rate = state.schedule(step)
    if not (isinstance(rate, int | float | np.number) and math.isfinite(rate)):
        raise ArgumentError(
            f"Trainer: schedule({step}) is {rate!r}; allowed: a finite number, as a rate is"
        )
    return rate
