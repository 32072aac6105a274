"""metrics.csv has the numbers of metrics.jsonl, also after a run was interrupted."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from handgrad.errors import RunError
from handgrad.training import Callback, Trainer, train
from handgrad.training.folder import Run
from handgrad.training.table import as_csv
from tests.training import problem


class KilledError(Exception):
    """Stands for the end of the process."""


class Dies(Callback):
    """Ends the process, as it were, after an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_epoch(self, trainer: Trainer, record: Any) -> None:
        if trainer.epoch == self.epoch:
            raise KilledError


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def logged(folder: Path) -> list[dict[str, str]]:
    """The epochs of metrics.jsonl, every number as it is written there."""
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line, parse_float=str, parse_int=str) for line in lines]
    epochs = [record for record in records if record.pop("kind") == "epoch"]
    return [{name: value or "" for name, value in epoch.items()} for epoch in epochs]


def test_it_has_the_numbers_of_the_log(tmp_path: Path) -> None:
    train(**problem.parts(epochs=3), out=tmp_path / "run")
    assert table(tmp_path / "run") == logged(tmp_path / "run")
    assert len(table(tmp_path / "run")) == 3


def test_a_resumed_run_has_every_epoch_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    pieces = problem.parts(epochs=4, callbacks=[Dies(3)], checkpoint_steps=1)
    with pytest.raises(KilledError):
        train(**pieces, out=folder)
    train(
        **problem.parts(epochs=4, callbacks=[Dies(-1)], checkpoint_steps=1), out=folder, resume=True
    )
    assert [row["epoch"] for row in table(folder)] == ["1", "2", "3", "4"]
    assert table(folder) == logged(folder)


def test_one_that_was_lost_before_the_end_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(Run, "save_model", lambda *_: (_ for _ in ()).throw(KilledError))
        with pytest.raises(KilledError):
            train(**problem.parts(epochs=2), out=folder)
    (folder / "metrics.csv").unlink()
    train(**problem.parts(epochs=2), out=folder, resume=True)
    assert table(folder) == logged(folder)


def test_a_changed_one_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(**problem.parts(epochs=1), out=folder)
    with (folder / "metrics.csv").open("a", encoding="utf-8") as file:
        file.write("2,0.0\n")
    with pytest.raises(RunError, match=r"metrics.csv"):
        Run(folder).load_model()


def test_cells_without_a_finite_number_are_empty() -> None:
    first = {"kind": "epoch", "epoch": 1, "loss": 0.1, "accuracy": None}
    second = {"kind": "epoch", "epoch": 2, "loss": float("nan"), "validation_loss": 1e-9}
    text = as_csv([first, second])
    assert text == "epoch,loss,accuracy,validation_loss\n1,0.1,,\n2,,,1e-09\n"
