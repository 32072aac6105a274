"""The kernels' tests once more on every other instruction set that this machine runs.

Those that were not compiled are skipped by name: an installation has the best one, unless
HANDGRAD_BUILD asked for more; `.ci/run` compiles the next best for this.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handgrad import kernels

ROOT = Path(__file__).parents[2]


def other_instruction_sets() -> tuple[str, ...]:
    if kernels.native is None:
        return ()
    from handgrad.kernels import _cpu

    return tuple(name for name in _cpu.runs() if name != kernels.instruction_set)


@pytest.mark.parametrize("name", other_instruction_sets())
def test_kernels_equal_references_on(name: str) -> None:
    if name not in kernels.supported:
        pytest.skip(f"the kernels for {name} were not compiled (HANDGRAD_BUILD=all)")
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--no-header",
            "-p",
            "no:cacheprovider",
            "tests/ops/test_kernels.py",
        ],
        cwd=ROOT,
        env=os.environ | {"HANDGRAD_ISA": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert " passed" in found.stdout


def test_an_unknown_instruction_set_is_named() -> None:
    if kernels.native is None:
        pytest.skip(kernels.reason)
    found = subprocess.run(
        [sys.executable, "-c", "import handgrad.kernels"],
        env=os.environ | {"HANDGRAD_ISA": "z80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode != 0
    assert "HANDGRAD_ISA is 'z80'; allowed on this machine: " in found.stderr
