"""A run begins in a new folder, or is opened again where it was interrupted."""

from __future__ import annotations

import os
from pathlib import Path

from handgrad.errors import ArgumentError, RunError
from handgrad.escaping import quoted
from handgrad.training.config import PROGRAM_CONFIG
from handgrad.training.folder import PROGRAM, Run
from handgrad.training.state import TrainState
from handgrad.writing import reason


def start_run(folder: str | Path, config_text: str) -> Run:
    """Make the folder of a new run and write its config.toml.

    Raises RunError where the folder holds anything already, or is in use.
    """
    run = Run(folder)
    if os.path.lexists(run.config):
        done = "a finished run" if run.finished else "an unfinished run"
        hint = "" if run.finished else f", or continue it with: {run.resume_command}"
        raise RunError(f"{folder}: holds {done}; allowed: a new or empty folder{hint}")
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        names = sorted(os.listdir(run.folder))
    except OSError as error:
        raise RunError(f"{folder}: cannot be made a folder ({reason(error)})") from None
    except ValueError as error:
        raise RunError(f"{quoted(folder)} is no folder's name ({error})") from None
    others = [name for name in names if not name.startswith(".")]
    if others:
        raise RunError(f"{folder}: holds {quoted(others[0])}; allowed: a new or empty folder")
    run.lock()
    try:
        if os.path.lexists(run.config):  # by another process, between the look and the lock
            raise RunError(f"{folder}: holds a run; allowed: a new or empty folder")
        run.write_config(config_text)
    except BaseException:
        run.close()
        raise
    return run


def read_config(folder: str | Path) -> str:
    """The text of a run's config.toml. Raises RunError where there is none or it was changed."""
    return Run(folder).read_config()


def resume_run(folder: str | Path) -> Run:
    """Open the folder of a run that was interrupted.

    Raises RunError where there is none, or another process is using it.
    """
    read_config(folder)
    run = Run(folder)
    run.lock()
    try:
        run.read_config()
    except BaseException:
        run.close()
        raise
    return run


def open_run(state: TrainState, epochs: int, *, resumes: bool) -> Run | None:
    """The run of a training that a program starts; None without a folder, and beside rank 0."""
    if isinstance(state.out, Run):
        return state.out
    if state.replicas.rank > 0:
        return None
    if state.out is None:
        if resumes:
            raise ArgumentError("Trainer: resume needs out, the folder of the run; found None")
        return None
    config = _config_of(state, epochs)
    run = resume_run(state.out) if resumes else start_run(state.out, config)
    run.resume_command = PROGRAM
    run.change_command = (
        "the same program with another learning rate, such as lr={lr}, and "
        "fit(..., resume=True, change=True)"
    )
    run.config_text = config
    return run


def _config_of(state: TrainState, epochs: int) -> str:
    """The config.toml of a run that was started from Python and not from a recipe."""
    settings = {
        "epochs": epochs,
        "seed": state.seed,
        "batch_size": state.batch_size,
        "accumulate": state.accumulate,
        "clip_norm": state.clip_norm,
        "precision": f'"{state.precision}"',
        "optimizer": f'"{type(state.optimizer).__name__}"',
        "lr": state.optimizer.lr,
    }
    lines = ["# Written by hg.Trainer; model and data come from the program.", PROGRAM_CONFIG]
    lines += [f"{name} = {value}" for name, value in settings.items() if value is not None]
    return "\n".join(lines) + "\n"
