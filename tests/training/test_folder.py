"""A run folder belongs to one run and to one process at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from handgrad import layers
from handgrad.errors import RunError
from handgrad.training import read_config, resume_run, start_run, train
from tests.training import problem


def test_a_run_leaves_everything(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    summary = train(**problem.parts(epochs=2), out=folder)
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert names == {
        "config.toml",
        "metrics.jsonl",
        "metrics.csv",
        "checkpoint",
        "model.safetensors",
        "summary.json",
        "report.html",
    }
    assert summary == json.loads((folder / "summary.json").read_text())
    for key in ("test_loss", "test_accuracy", "seconds", "parameters", "engine"):
        assert summary[key] is not None
    assert read_config(folder) == 'recipe = "bars"\n'
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    epochs = [record for record in records if record["kind"] == "epoch"]
    assert [record["epoch"] for record in epochs] == [1, 2]
    norms = [record["norms"] for record in records if record["kind"] == "gradients"]
    assert len(norms) == 16
    assert set(norms[0]) == {"conv", "norm", "out"}
    assert all(np.isfinite(list(norm.values())).all() for norm in norms)


def test_a_second_run_is_refused(tmp_path: Path) -> None:
    start_run(tmp_path / "run", "seed = 0\n").close()
    with pytest.raises(RunError, match=r"unfinished run.*handgrad train --resume"):
        start_run(tmp_path / "run", "seed = 0\n")
    (tmp_path / "run" / "summary.json").write_text("{}")
    with pytest.raises(RunError, match="a finished run"):
        start_run(tmp_path / "run", "seed = 0\n")


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"thesis\.tex"):
        start_run(tmp_path, "")
    with pytest.raises(RunError, match="cannot be made a folder"):
        start_run(tmp_path / "thesis.tex", "")


def test_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run here \(config.toml is missing\)"):
        resume_run(tmp_path)


def test_a_run_in_use_is_refused_until_its_process_ends(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    program = (
        "import sys; from handgrad.training import start_run\n"
        "run = start_run(sys.argv[1], ''); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "run")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(RunError, match="in use"):
            resume_run(tmp_path / "run")
        process.kill()
        process.communicate()
    resume_run(tmp_path / "run").close()


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(RunError, match="cannot be written to"):
        start_run(tmp_path, "")


def test_a_damaged_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    train(**problem.parts(epochs=1), out=tmp_path)
    summary, metrics = tmp_path / "summary.json", tmp_path / "metrics.jsonl"
    summary.write_text("{")
    with pytest.raises(RunError, match=r"summary\.json is damaged"):
        train(**problem.parts(epochs=1), out=tmp_path, resume=True)
    summary.unlink()
    records = metrics.read_bytes()
    for damaged in (records[:9], b"[" + records[1:]):
        metrics.write_bytes(damaged)
        with pytest.raises(RunError, match=r"metrics\.jsonl is damaged"):
            train(**problem.parts(epochs=1), out=tmp_path, resume=True)
        assert metrics.read_bytes() == damaged


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    train(**problem.parts(epochs=1), out=tmp_path)
    (tmp_path / "summary.json").unlink()
    rng = np.random.default_rng(0)
    other = layers.Sequential(layers.Flatten(), layers.Dense(36, problem.CLASSES, rng=rng))
    with pytest.raises(RunError, match=r"model\.conv is None; allowed: Conv2d"):
        train(**{**problem.parts(epochs=1), "model": other}, out=tmp_path, resume=True)


def test_resuming_with_other_settings_is_refused(tmp_path: Path) -> None:
    train(**problem.parts(epochs=1), out=tmp_path)
    (tmp_path / "summary.json").unlink()
    with pytest.raises(RunError, match="batch_size is 8; allowed: 16"):
        train(**problem.parts(epochs=1, batch_size=8), out=tmp_path, resume=True)
