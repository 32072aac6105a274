"""Killed runs, at random and inside system calls: resumed, they end the same, bit for bit."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from fuzz import _runs
from fuzz.harness import Case, Fault
from fuzz.harness.surface import FOLDER, scratch

PATIENCE = 300.0
MEMORY = 2048

#: About as many system calls on its folder as a small run makes.
_CALLS: Final = 200
_KILL_BEFORE: Final = -1


@functools.cache
def _library() -> str:
    """The library that kills a process at a system call; "" without a compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        return ""
    built = Path(tempfile.mkdtemp(prefix="faults-")) / "faults.so"
    source = FOLDER.parent / "tests" / "training" / "faults.c"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return str(built)


def draw(rng: np.random.Generator) -> Case:
    name = sorted(_runs.RECIPES)[int(rng.integers(len(_runs.RECIPES)))]
    delay = float(rng.random())
    inside = bool(rng.random() < 0.5)
    number, kind = int(rng.integers(_CALLS)), _KILL_BEFORE - int(rng.integers(2))

    def run() -> None:
        sample = _runs.sample(name)
        folder = scratch() / "run"
        if inside and _library():
            arguments = [str(folder), "--faults", _library(), str(number), str(kind)]
            ended = _start(name, *arguments, preload=_library()).wait()
        else:
            process = _start(name, str(folder))
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            ended = process.wait()
        if ended not in (0, -signal.SIGKILL):
            raise Fault("exit code", f"a run to be killed ended with {ended}")
        again = ["--resume"] if (folder / "config.toml").exists() else []
        code = _start(name, str(folder), *again).wait()
        if code:
            raise Fault("lost", f"a run that was killed could not be continued, exit code {code}")
        if _runs.weights(folder) != sample.weights:
            raise Fault("other weights", "a run that was killed ended with other weights")
        if list(folder.rglob("*.partial")):
            raise Fault("leftovers", "a run that was killed has left files")

    return Case(f"{name} killed {'inside a call' if inside else 'at random'}", run)


def _start(name: str, *arguments: str, preload: str = "") -> subprocess.Popen[bytes]:
    """A run in a process of its own, once it is about to train."""
    environment = {**os.environ, "HANDGRAD_THREADS": "1"}
    if preload:
        # A sanitizer's library insists on being the first.
        environment["LD_PRELOAD"] = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), preload]))
    command = [sys.executable, "-m", "fuzz._runs", name, str(_runs.data_folder()), *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=FOLDER.parent, env=environment, stdout=pipe)
    assert process.stdout is not None
    with process.stdout as lines:
        lines.readline()
    return process
