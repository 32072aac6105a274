"""The folder of a run: who may use it, and what is written where.

    config.toml         what was asked for, and what was changed since
    metrics.jsonl       one JSON line per epoch ("kind": "epoch"), one every so many steps with the
                        gradient norms ("kind": "gradients"), one for each change ("kind": "change")
    metrics.csv         the epochs up to the last checkpoint as a table
    checkpoint/         latest.safetensors, the whole state of the training
    model.safetensors   the trained weights and buffers
    summary.json        the results
    report.html         the same for people

A run is finished when summary.json is there: it is written last. Every file has a checksum: that of
config.toml, of the safetensors files and of summary.json stands in the file itself; a checkpoint
has that of the metrics before it; and summary.json has those of all the others. The files know the
run that they belong to, so that none can be taken for another's.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import tempfile
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from handgrad.arrays import Array
from handgrad.errors import HandgradError, HandgradWarning, RunError
from handgrad.io.checkpoint import (
    changed,
    check_run,
    finite,
    load_arrays,
    load_checkpoint,
    read_file,
    save_arrays,
    save_checkpoint,
    to_json,
    under,
)
from handgrad.io.checksums import (
    BLANK,
    digest,
    open_own,
    read_checksum,
    remove_temporary,
    with_checksum,
)
from handgrad.paths import as_path
from handgrad.training.checkpoint import CheckpointState
from handgrad.training.config import sealed, unsealed, with_change
from handgrad.training.log import NO_METRICS, MetricsLog
from handgrad.training.table import as_csv
from handgrad.writing import reason, write_atomically

try:
    import fcntl
except ImportError:  # Windows has no flock: there the guard against a second process is missing.
    fcntl = None  # type: ignore[assignment]

#: Stands before the checksum in summary.json.
_JSON_MARKER: Final = b'"sha256": "'

#: The way to continue a run that a program started.
PROGRAM: Final = "the same program, with fit(..., resume=True)"

_BUSY: Final = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Run:
    """An open run folder; use it as a context manager, or call `close`.

    It is held by a lock of the operating system, which vanishes with the process however that
    ends, so a killed run never blocks its own resumption.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            self.folder = folder = as_path("run", folder)
        except HandgradError as error:
            raise RunError(str(error)) from None
        self.config = folder / "config.toml"
        self.metrics = folder / "metrics.jsonl"
        self.table = folder / "metrics.csv"
        self.checkpoint = folder / "checkpoint" / "latest.safetensors"
        self.model = folder / "model.safetensors"
        self.summary = folder / "summary.json"
        self.report = folder / "report.html"
        #: The command that continues the run; programs with another interface put theirs here.
        self.resume_command = f"handgrad train --resume {shlex.quote(str(folder))}"
        #: The same with a smaller learning rate, which takes the place of {lr}.
        self.change_command = f"{self.resume_command} --set optimizer.lr={{lr}}"
        #: The text of config.toml when settings are changed, and a description of the changes.
        self.config_text = self.changes = ""
        #: The model as JSON, for checkpoints; see `io.files`.
        self.description = ""
        #: The name that its files have for it, and the checksum of config.toml; "" before that.
        self.id = ""
        self.config_checksum = ""
        self._kept: list[Path] = []
        self._lock = -1
        self._log = MetricsLog(self.metrics)
        _OPEN.add(self)

    @property
    def finished(self) -> bool:
        """Return whether everything was written."""
        return os.path.lexists(self.summary)

    def lock(self) -> None:
        """Take the folder for this process, and tidy up after one that was killed in it.

        Raises RunError while another one holds it, or where nothing can be written to it.
        """
        try:
            lock = open_own(self.folder / ".lock", os.O_RDWR)
        except OSError as error:
            raise RunError(f"{self.folder}: cannot be written to ({reason(error)})") from None
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(lock)
                if error.errno in _BUSY:
                    raise RunError(f"{self.folder}: in use by another process") from None
                raise RunError(
                    f"{self.folder}: cannot be locked ({reason(error)}); allowed: a folder on a "
                    "file system with locks, so that two processes cannot write into it"
                ) from None
        self._lock = lock
        try:
            remove_temporary(self.folder)
            remove_temporary(self.checkpoint.parent)
        except OSError as error:
            self.close()
            raise RunError(f"{self.folder}: cannot be written to ({reason(error)})") from None

    @contextmanager
    def reporting(self, path: Path) -> Iterator[None]:
        """Make errors of the system, while `path` is written, a RunError that says how to go on."""
        try:
            yield
        except OSError as error:
            goes_on = ""
            if self.checkpoint.exists():
                goes_on = (
                    "; the last checkpoint is as it was, continue from it with: "
                    f"{self.resume_command}"
                )
            raise RunError(f"{path} cannot be written: {reason(error)}{goes_on}") from None

    def reopen(self) -> None:
        """Take back that the run is finished, because it goes on from its last checkpoint."""
        with self.reporting(self.summary):
            self.summary.unlink(missing_ok=True)

    # -- config.toml ------------------------------------------------------------------------------

    def write_config(self, text: str) -> None:
        """Write config.toml for a run that begins."""
        self.id = uuid.uuid4().hex
        self._write_config(text)

    def change_config(self, change: str) -> None:
        """Write `config_text` as config.toml, with a line that records the change."""
        self._write_config(with_change(self.read_config(), self.config_text, change))

    def _write_config(self, text: str) -> None:
        parts = sealed(self.config, text, self.id)
        with self.reporting(self.config):
            write_atomically(self.config, *parts)
        self.config_checksum = bytes(parts[1]).decode()

    def read_config(self) -> str:
        """The text of config.toml without its last line.

        Raises RunError where there is none, or where it was damaged or changed, and where the
        folder of the checkpoint is a link: its files would be others than those of the run.
        """
        if os.path.islink(self.checkpoint.parent):
            raise RunError(
                f"{self.checkpoint.parent} is a symbolic link; allowed: the folder of the run"
            )
        if not os.path.lexists(self.config):
            raise RunError(
                f"{self.folder}: no run here (config.toml is missing); allowed: the folder of a run"
            )
        advice = f"; to change a setting: {self.resume_command} --set KEY=VALUE"
        text, self.id, self.config_checksum = unsealed(self.config, read_file(self.config), advice)
        return text

    # -- metrics.jsonl ----------------------------------------------------------------------------

    def log(self, record: Mapping[str, object]) -> None:
        """Append one line to metrics.jsonl; numbers that are not finite become null."""
        with self.reporting(self.metrics):
            self._log.append(record)

    def records(self) -> list[dict[str, object]]:
        """The lines of metrics.jsonl. Raises RunError where they are not those that were logged."""
        return [json.loads(line) for line in self._log.content().splitlines()]

    # -- checkpoints ------------------------------------------------------------------------------

    def save(self, arrays: Mapping[str, Array], state: Mapping[str, object]) -> None:
        """Write a checkpoint, which also holds the settings and the metrics that belong to it."""
        with self.reporting(self.metrics):
            metrics = self._log.sync()
        known = {
            "config": self.config_checksum,
            "metrics": metrics,
            "description": self.description,
        }
        with self.reporting(self.checkpoint):
            save_checkpoint(self.checkpoint, arrays, {**state, **known}, self.id)

    def save_table(self, epochs: Sequence[Mapping[str, object]]) -> None:
        """Write the epochs, which are those before the last checkpoint, as metrics.csv."""
        if epochs:
            with self.reporting(self.table):
                write_atomically(self.table, as_csv(epochs).encode())

    def load(self) -> tuple[dict[str, Array], dict[str, object]] | None:
        """The last checkpoint, None before the first; drops the metrics written after it.

        Raises RunError where it, or what was logged before it, is damaged.
        """
        saved, logged = self._read_checkpoint()
        if saved is not None:
            del saved[1]["description"]
        if logged is not None:
            with self.reporting(self.metrics):
                self._log.continue_after(logged)
        return saved

    def _read_checkpoint(
        self,
    ) -> tuple[tuple[dict[str, Array], dict[str, Any]] | None, bytes | None]:
        """The last checkpoint, and the metrics that were logged before it."""
        saved = load_checkpoint(self.checkpoint, self.id)
        if saved is None and os.path.lexists(self.model):
            raise RunError(f"{self.checkpoint} is missing; expected the one that the run wrote")
        metrics = NO_METRICS if saved is None else saved[1].pop("metrics", None)
        return saved, self._log.logged_before(self.checkpoint, metrics)

    # -- results ----------------------------------------------------------------------------------

    def keep(self, write: Callable[[Path], None]) -> None:
        """Keep beside the weights what `write` puts into a folder.

        Raises RunError where a file of that name holds something else, as after other data.
        """
        with self.reporting(self.folder), tempfile.TemporaryDirectory() as scratch:
            write(Path(scratch))
            for file in sorted(Path(scratch).iterdir()):
                kept, content = self.folder / file.name, file.read_bytes()
                if not os.path.lexists(kept):
                    write_atomically(kept, content)
                elif read_file(kept) != content:
                    raise RunError(
                        f"{kept} is damaged, or the data are others than those that the run was "
                        "begun with; expected what these data give"
                    )
                self._kept.append(kept)

    def save_model(self, arrays: Mapping[str, Array]) -> None:
        """Write model.safetensors, atomically, with the description."""
        with self.reporting(self.model):
            save_arrays(
                self.model,
                arrays,
                {"format": "np", "run": self.id, "handgrad": self.description},
            )

    def load_model(self) -> tuple[dict[str, Array], dict[str, str]]:
        """The arrays and metadata that `save_model` wrote, once no file is found damaged.

        A run that is not finished gives those of its last checkpoint, with a warning that says how
        far it has come. Raises RunError where there is none, or where a file is missing or damaged.
        """
        self.read_config()
        if not self.finished:
            return self._load_unfinished()
        self.read_summary()
        arrays, metadata = load_arrays(self.model)
        check_run(self.model, metadata, self.id)
        return arrays, metadata

    def _load_unfinished(self) -> tuple[dict[str, Array], dict[str, str]]:
        saved, _ = self._read_checkpoint()
        if saved is None:
            raise RunError(
                f"{self.folder} is not finished, and has no checkpoint yet; expected one: "
                f"{self.resume_command}"
            )
        arrays, state = saved
        description = state.pop("description", "")
        found = CheckpointState.read(self.checkpoint, state)
        steps = f"step {found.step}, in epoch {found.epoch + 1}"
        if not found.position:
            steps = f"epoch {found.epoch}" if found.epoch else "nothing, before the first step"
        warnings.warn(
            f"{self.folder} is not finished: this is the model of its last checkpoint, after "
            f"{steps}; to finish it: {self.resume_command}",
            HandgradWarning,
            stacklevel=4,
        )
        return under("model.", arrays), {"handgrad": description}

    def save_summary(self, summary: Mapping[str, object]) -> dict[str, object]:
        """Write summary.json, atomically, and return it; the run is finished then."""
        own = finite({**summary, "run": self.id, "files": self._checksums()})
        text = to_json(str(self.summary), {**own, "sha256": BLANK.decode()}, indent=2) + "\n"
        parts = with_checksum(text.encode(), _JSON_MARKER)
        with self.reporting(self.summary):
            write_atomically(self.summary, *parts)
        return {**own, "sha256": bytes(parts[1]).decode()}

    def _checksums(self) -> dict[str, str]:
        """The checksum of every file of the run beside summary.json, by its name in the folder."""
        self._log.content()
        own = [self.config, self.metrics, self.checkpoint, self.model, self.report, *self._kept]
        own += [self.table] * os.path.lexists(self.table)
        return {
            path.relative_to(self.folder).as_posix(): digest([read_file(path)])
            for path in own
            if path != self.metrics or self._log.length
        }

    def read_summary(self) -> dict[str, object]:
        """The summary that `save_summary` wrote.

        Raises RunError where this or another file of the run is missing, damaged or another run's.
        """
        content = read_file(self.summary)
        written, found = read_checksum(content, _JSON_MARKER)
        if written != found:
            raise changed(self.summary, written, found)
        summary: Any = json.loads(content)
        if not isinstance(summary, dict) or not isinstance(summary.get("files"), dict):
            raise RunError(f"{self.summary} is damaged: it has no files; expected their checksums")
        check_run(self.summary, summary, self.id)
        for name, checksum in summary["files"].items():
            path = self.folder / name
            if not os.path.lexists(path):
                raise RunError(f"{path} is missing; expected the one that the run wrote")
            found = digest([read_file(path)])
            if found != checksum:
                raise changed(path, checksum, found)
        return summary

    def close(self) -> None:
        """Give the folder free for other processes."""
        lock, self._lock = self._lock, -1
        for descriptor in (self._log.release(), lock):
            if descriptor >= 0:
                with suppress(OSError):  # what was written there has been synced or dropped
                    os.close(descriptor)

    def __del__(self) -> None:
        with suppress(AttributeError):  # of one whose folder was no path
            self.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


#: A child of a fork shares its parent's locks, and would hold them when the parent has ended.
_OPEN: Final[weakref.WeakSet[Run]] = weakref.WeakSet()


def _close_in_child() -> None:
    for run in list(_OPEN):
        run.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
