"""SIGKILL at random moments; `python -m fuzz --only kills` does the same to the recipes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tolerances import HANGS
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
    try:
        process.communicate(timeout=HANGS)
    finally:
        process.kill()
    return process.returncode


def wait_for_checkpoint(folder: Path, process: subprocess.Popen[str]) -> float:
    """Until the process has written a checkpoint of its own, or has ended; the seconds it took."""
    path = folder / "checkpoint" / "latest.safetensors"
    since, began = changed(path), time.perf_counter()
    while process.poll() is None and changed(path) == since:
        time.sleep(0.001)
    return time.perf_counter() - began


def changed(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_runs_end_like_the_undisturbed_one(tmp_path: Path) -> None:
    assert finish(start(tmp_path / "undisturbed", resume=False)) == 0
    folder = tmp_path / "killed"
    chance = random.Random(7)
    kills, between = 0, 0.02
    for attempt in range(4):
        process = start(folder, resume=(folder / "config.toml").exists())
        if attempt % 2:  # half of the kills are sure to find something to resume from
            wait_for_checkpoint(folder, process)
            # From one checkpoint to the next, as long as that takes under the load of this moment.
            between = wait_for_checkpoint(folder, process)
        time.sleep(chance.uniform(0, 2 * between))
        process.send_signal(signal.SIGKILL)
        kills += finish(process) == -signal.SIGKILL
    assert (folder / "checkpoint" / "latest.safetensors").exists()
    assert kills >= 2
    assert finish(start(folder, resume=True)) == 0
    assert_same_run(folder, tmp_path / "undisturbed")
