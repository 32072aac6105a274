"""One of two ranks killed at a random moment, again and again: the run ends as the undisturbed one.

Every killed run is resumed on another number of ranks, down to one process without MPI.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from safetensors.numpy import load_file

ROOT: Final = Path(__file__).parents[2]
_RECIPE: Final = ("digits", "--exact", "--epochs", "4", "--quiet")


def run(mpirun: Sequence[str], times: int) -> None:
    """Kill so many ranks, and say for each whether the weights are those of the whole run."""
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as scratch:
        whole, folder = Path(scratch) / "whole", Path(scratch) / "killed"
        began = time.perf_counter()
        _finish(_start([], *_RECIPE, "--out", str(whole)))
        seconds = time.perf_counter() - began
        kills = 0
        while kills < times:
            shutil.rmtree(folder, ignore_errors=True)
            process = _start(mpirun, *_RECIPE, "--out", str(folder))
            time.sleep(seconds * chance.uniform(0.2, 0.8))
            victim = chance.choice(_ranks_of(process.pid) or [0])
            if not victim:
                _finish(process)
                continue
            os.kill(victim, signal.SIGKILL)
            said = _finish(process)
            if (folder / "summary.json").exists():
                continue
            kills += 1
            begun = (folder / "checkpoint" / "latest.safetensors").exists()
            again = ("--resume", str(folder)) if begun else (*_RECIPE, "--out", str(folder))
            if not begun:
                shutil.rmtree(folder, ignore_errors=True)
            ranks = kills % 4
            _finish(_start([*mpirun[:-1], str(ranks)] if ranks else [], *again))
            same = _weights(folder) == _weights(whole)
            sentence = [line for line in said.splitlines() if "a rank was lost" in line]
            print(
                f"kill {kills:2}: {'the same weights' if same else 'OTHER WEIGHTS'} on "
                f"{ranks or 'no'} ranks, {len(sentence)} sentence"
            )
            if not same or len(sentence) != begun:
                sys.exit(said)


def _start(begin: Sequence[str], *arguments: str) -> subprocess.Popen[str]:
    command = [*begin, sys.executable, "-m", "handgrad", "train", *arguments]
    environment = {**os.environ, "HANDGRAD_THREADS": "1"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> str:
    return process.communicate()[1]


def _ranks_of(launcher: int) -> list[int]:
    """The processes that a launcher started which are ranks, by what stands in /proc."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes()
            command = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if b"PMI_RANK=" in environment and b"\0train\0" in command and _below(place, launcher):
            found.append(int(place.name))
    return found


def _below(place: Path, launcher: int) -> bool:
    """Return whether a process descends from the launcher."""
    while place.name not in ("0", "1"):
        if int(place.name) == launcher:
            return True
        try:
            parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            return False
        place = place.with_name(parent)
    return False


def _weights(folder: Path) -> bytes:
    arrays = load_file(folder / "model.safetensors")
    return b"".join(np.ascontiguousarray(arrays[name]).tobytes() for name in sorted(arrays))
