"""SIGKILL at random moments; `python -m benchmarks.kills` does the same to the real recipe."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.training.test_resume import assert_same_run

EPOCHS = 30
ROOT = Path(__file__).parents[2]


def start(folder: Path, *, resume: bool) -> subprocess.Popen[str]:
    """The training program, once it has been imported and is about to start."""
    command = [sys.executable, "-m", "tests.training.problem", str(folder)]
    command += ["--epochs", str(EPOCHS)] + ["--resume"] * resume
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=120)
    return process.returncode


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_runs_end_like_the_undisturbed_one(tmp_path: Path) -> None:
    began = time.perf_counter()
    assert finish(start(tmp_path / "undisturbed", resume=False)) == 0
    whole = time.perf_counter() - began

    folder = tmp_path / "killed"
    chance = random.Random(7)
    kills = 0
    for _ in range(4):
        process = start(folder, resume=(folder / "config.toml").exists())
        time.sleep(chance.uniform(0, 0.3 * whole))
        process.send_signal(signal.SIGKILL)
        kills += finish(process) == -signal.SIGKILL
    assert kills >= 2
    assert finish(start(folder, resume=True)) == 0
    assert_same_run(folder, tmp_path / "undisturbed")
