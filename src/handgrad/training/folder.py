"""The folder of a run: who may use it, and what is written where.

    config.toml         what was asked for
    metrics.jsonl       one JSON line per epoch ("kind": "epoch"), and one every so many steps with
                        the gradient norms ("kind": "gradients")
    checkpoint/         latest.safetensors, the whole state of the training
    model.safetensors   the trained weights and buffers
    summary.json        the results
    report.html         the same for people

A run is finished when summary.json is there: it is written last.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from handgrad.arrays import Array
from handgrad.errors import RunError
from handgrad.training.checkpoint import (
    load_checkpoint,
    save_arrays,
    save_checkpoint,
    write_atomically,
)

try:
    import fcntl
except ImportError:  # Windows has no flock: there the guard against a second process is missing.
    fcntl = None  # type: ignore[assignment]


class Run:
    """An open run folder; use it as a context manager, or call `close`.

    It is held by a lock of the operating system, which vanishes with the process however that
    ends, so a killed run never blocks its own resumption.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config.toml"
        self.metrics = folder / "metrics.jsonl"
        self.checkpoint = folder / "checkpoint" / "latest.safetensors"
        self.model = folder / "model.safetensors"
        self.summary = folder / "summary.json"
        self.report = folder / "report.html"
        #: What continues the run; programs other than the command line put their own words here.
        self.resume_command = f"handgrad train --resume {shlex.quote(str(folder))}"
        self._lock: IO[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def finished(self) -> bool:
        """Whether everything was written."""
        return self.summary.exists()

    def lock(self) -> None:
        """Take the folder for this process.

        Raises RunError while another one holds it, or where nothing can be written to it.
        """
        try:
            lock = open(self.folder / ".lock", "wb")  # noqa: SIM115 - held until close()
        except OSError as error:
            raise RunError(f"{self.folder}: cannot be written to ({error.strerror})") from None
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                raise RunError(f"{self.folder}: in use by another process") from None
        self._lock = lock

    def log(self, record: Mapping[str, Any]) -> None:
        """Append one line to metrics.jsonl."""
        if self._log is None:
            self._log = open(self.metrics, "ab")  # noqa: SIM115 - held until close()
        self._log.write(json.dumps(record).encode() + b"\n")
        self._log.flush()

    def records(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl. Raises RunError where one is damaged."""
        if not self.metrics.exists():
            return []
        try:
            return [json.loads(line) for line in self.metrics.read_text("utf-8").splitlines()]
        except ValueError as error:
            raise RunError(
                f"{self.metrics} is damaged ({error}); expected JSON in every line"
            ) from None

    def save(self, arrays: Mapping[str, Array], state: Mapping[str, Any]) -> None:
        """Write a checkpoint that also knows how much of metrics.jsonl belongs to it."""
        length = 0
        if self._log is not None:
            os.fsync(self._log.fileno())
            length = self._log.tell()
        elif self.metrics.exists():
            length = self.metrics.stat().st_size
        save_checkpoint(self.checkpoint, arrays, {**state, "metrics_length": length})

    def load(self) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """The last checkpoint, None before the first; drops the metrics written after it.

        Raises RunError where some written before it are missing.
        """
        saved = load_checkpoint(self.checkpoint)
        if self.metrics.exists():
            length = saved[1]["metrics_length"] if saved else 0
            found = self.metrics.stat().st_size
            if found < length:
                raise RunError(
                    f"{self.metrics} is damaged: it has {found} bytes; expected the {length} or "
                    "more that it had at the last checkpoint"
                )
            os.truncate(self.metrics, length)
        return saved

    def save_model(self, arrays: Mapping[str, Array]) -> None:
        """Write model.safetensors, atomically."""
        save_arrays(self.model, arrays, {"format": "np"})

    def save_summary(self, summary: Mapping[str, Any]) -> None:
        """Write summary.json, atomically; the run is finished then."""
        write_atomically(self.summary, (json.dumps(summary, indent=2) + "\n").encode())

    def read_summary(self) -> dict[str, Any]:
        """What `save_summary` wrote. Raises RunError where it is damaged."""
        try:
            found: dict[str, Any] = json.loads(self.summary.read_text("utf-8"))
        except ValueError as error:
            raise RunError(f"{self.summary} is damaged ({error}); expected JSON") from None
        return found

    def close(self) -> None:
        """Give the folder free for other processes."""
        for file in (self._log, self._lock):
            if file is not None:
                file.close()
        self._log = self._lock = None

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def start_run(folder: str | Path, config_text: str) -> Run:
    """Make the folder of a new run and write its config.toml.

    Raises RunError where the folder holds anything already, or is in use.
    """
    run = Run(Path(folder))
    if run.config.exists():
        done = "a finished run" if run.finished else "an unfinished run"
        hint = "" if run.finished else f", or continue it with: {run.resume_command}"
        raise RunError(f"{folder}: holds {done}; allowed: a new or empty folder{hint}")
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made a folder ({error.strerror})") from None
    others = sorted(path.name for path in run.folder.iterdir() if not path.name.startswith("."))
    if others:
        raise RunError(f"{folder}: holds {others[0]!r}; allowed: a new or empty folder")
    run.lock()
    write_atomically(run.config, config_text.encode())
    return run


def read_config(folder: str | Path) -> str:
    """The text of a run's config.toml. Raises RunError where there is none or it is no text."""
    config = Path(folder) / "config.toml"
    if not config.is_file():
        raise RunError(f"{folder}: no run here (config.toml is missing)")
    try:
        return config.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{config} is damaged ({error}); expected text in UTF-8") from None


def resume_run(folder: str | Path) -> Run:
    """Open the folder of a run that was interrupted.

    Raises RunError where there is none, or another process is using it.
    """
    read_config(folder)
    run = Run(Path(folder))
    run.lock()
    return run
