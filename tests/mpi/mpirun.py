"""mpirun for tests, or a skip where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tolerances import HANGS

ROOT = Path(__file__).parents[2]


def command(ranks: int) -> list[str]:
    """The start of a command that runs on so many ranks of one thread."""
    pytest.importorskip("mpi4py")
    near = Path(sys.executable).with_name("mpirun")
    found = str(near) if near.exists() else shutil.which("mpirun")
    if found is None:
        pytest.skip("mpirun is not here")
    return [found, "-n", str(ranks), sys.executable, "-P"]


def environment() -> dict[str, str]:
    paths = os.pathsep.join((str(ROOT), *filter(None, sys.path)))
    return {**os.environ, "PYTHONPATH": paths, "HANDGRAD_THREADS": "1"}


def start(ranks: int, *arguments: Any, folder: Path = ROOT) -> subprocess.Popen[str]:
    """A Python program on so many ranks, or on one process without MPI for 0."""
    begin = command(ranks) if ranks else [sys.executable, "-P"]
    return subprocess.Popen(
        [*begin, *map(str, arguments)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(ranks: int, *arguments: Any, folder: Path = ROOT) -> tuple[int, str, str]:
    """Exit code, output and errors of such a program."""
    with start(ranks, *arguments, folder=folder) as process:
        try:
            output, errors = process.communicate(timeout=HANGS)
        finally:
            process.kill()
    return process.returncode, output, errors
