"""Checkpoints of a training between two steps: when they are written, and what is in them."""

from __future__ import annotations

import signal
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NoReturn

import numpy as np

from handgrad.data.sources import Source
from handgrad.errors import Interrupted
from handgrad.io.checkpoint import generator_state
from handgrad.optimizers import Optimizer
from handgrad.training.continuing import settings_of
from handgrad.training.divergence import diverged, layer_of
from handgrad.training.folder import PROGRAM
from handgrad.training.interrupts import Interrupt
from handgrad.training.moving import Moving
from handgrad.training.state import TrainState
from handgrad.training.update import Update

#: The end of an epoch is skipped as a checkpoint while writing would take more than this share of
#: the time: epochs of a few milliseconds should not wait for the disk. The last one never is.
_CHECKPOINT_SHARE: Final = 0.02


@dataclass
class TrainSession:
    """One call of `fit`: what moves the state in it, from which data and how far.

    identity: see `continuing.identity_of`; optimizer: the one of all replicas.
    """

    state: TrainState
    epochs: int
    source: Source
    validation: Source | None
    identity: dict[str, Any]
    optimizer: Optimizer
    update: Update
    moving: Moving
    interrupt: Interrupt = field(default_factory=Interrupt)
    norms_every: int = 1
    saved_at: float = 0.0
    save_seconds: float = 0.0


def check_weights(session: TrainSession) -> None:
    """Bring the weights up to date; raise RunError where they are not finite."""
    state = session.state
    session.update.publish()
    if not np.isfinite(state.parameters.buffer).all():
        raise diverged(
            state,
            f"the weights of the layer {layer_of(state.parameters)} are not finite after step "
            f"{state.step} (epoch {state.epoch + 1})",
        )


def save(session: TrainSession) -> None:
    """Write a checkpoint, on rank 0, once the others have given it what they alone have.

    It falls between two optimizer steps. Raises RunError where the weights are not finite: no
    checkpoint ever has such ones.
    """
    check_weights(session)
    began = time.perf_counter()
    state, optimizer = session.state, session.optimizer.state
    if state.run is None:
        return
    arrays = {f"model.{name}": array for name, array in state.model_arrays().items()}
    arrays |= {f"optimizer.{name}": array for name, array in optimizer.items()}
    for i, callback in enumerate(state.callbacks):
        arrays |= {f"callback{i}.{name}": array for name, array in callback.arrays().items()}
    models = state.model.generators.items()
    state.run.save(
        arrays,
        {
            "identity": session.identity,
            "settings": settings_of(state),
            "moved": session.moving.table(arrays, state.epoch_sizes if state.position else {}),
            "epoch": state.epoch,
            "position": state.position,
            "step": state.step,
            "stop": state.stop,
            "seconds": state.seconds,
            "sums": asdict(state.sums),
            "callbacks": [callback.state() for callback in state.callbacks],
            "generators": {
                "shuffling": state.shuffling_before,
                "augmenting": generator_state(state.augmenting),
                "model": {name: generator_state(generator) for name, generator in models},
            },
        },
    )
    state.run.save_table(state.history.epochs)
    session.saved_at = time.perf_counter()
    session.save_seconds = session.saved_at - began


def agreed(session: TrainSession, due: bool) -> bool:
    """Return whether one of the ranks saves, and let all know of a signal to one of them."""
    interrupt = session.interrupt
    asked, saves = session.state.replicas.agree(interrupt.asked, due)
    if asked:  # a signal that comes meanwhile is not lost
        interrupt.asked = asked
    return bool(saves)


def is_worth_saving(session: TrainSession) -> bool:
    """Return whether the last checkpoint took little of the time since."""
    waited = time.perf_counter() - session.saved_at
    return session.save_seconds <= _CHECKPOINT_SHARE * waited


def leave(session: TrainSession) -> NoReturn:
    """Save, and raise `Interrupted` for the signal that asked for it."""
    save(session)
    state, number = session.state, session.interrupt.asked
    is_interrupt = number == signal.SIGINT
    cause = "interrupted" if is_interrupt else f"stopped by {signal.Signals(number).name}"
    raise Interrupted(
        f"{cause} in epoch {state.epoch + 1} after step {state.step}; saved. "
        f"Continue with: {state.run.resume_command if state.run else PROGRAM}",
        number,
    )
