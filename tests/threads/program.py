"""Running a small program in a process of its own, as the tests here do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from handgrad import kernels
from tests.tolerances import HANGS

needs_kernels: Final = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")
needs_linux: Final = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")


def run(*arguments: str, **environment: str) -> str:
    """The output of `python arguments`; AssertionError with its errors unless it exits with 0."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("HANDGRAD_", "OMP_"))}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *arguments],
        cwd=Path(__file__).parents[2],
        env={**settings, **environment},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout
