"""A run loses nothing to a disk that is full, errors, permissions, or kills at any system call.

`python -m tests.training.faulty` with every call takes minutes; here every so many of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not sys.platform.startswith("linux") or COMPILER is None:
        pytest.skip("needs Linux and a C compiler")
    built = tmp_path_factory.mktemp("faults") / "faults.so"
    source = HERE / "faults.c"
    command = [COMPILER, "-O1", "-Wall", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return built


@pytest.mark.slow
def test_a_fault_at_a_system_call_loses_nothing(library: Path, tmp_path: Path) -> None:
    found = subprocess.run(
        [
            *(sys.executable, "-m", "tests.training.faulty", str(library), str(tmp_path / "runs")),
            *("--every", "23"),
        ],
        cwd=HERE.parents[1],
        env={**os.environ, "LD_PRELOAD": str(library), "HANDGRAD_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    endings = {
        word: int(count) for count, word in re.findall(r"(\d+) (killed|reported)", found.stdout)
    }
    assert endings["killed"] > 10
    assert endings["reported"] > 10
