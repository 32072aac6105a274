"""An installation is taken as it is found: with all kernels, some, or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import handgrad
from handgrad import kernels

PACKAGE = Path(handgrad.__file__).parent
#: Every test here starts other processes.
pytestmark = pytest.mark.slow


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The package without its compiled modules, to be imported from there."""
    shutil.copytree(
        PACKAGE,
        tmp_path / "handgrad",
        ignore=lambda _, names: {
            name
            for name in names
            if not name.endswith((".py", ".pyi", ".txt", ".toml")) and "." in name
        },
    )
    return tmp_path


def run(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HANDGRAD_")}
    return subprocess.run(
        [sys.executable, *arguments],
        env=kept | {"PYTHONPATH": str(home)} | environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
    )


IMPORT = ("-c", "import handgrad as hg; hg.get_engine()")


def test_without_kernels_the_first_use_warns_in_one_line(bare: Path) -> None:
    (bare / "handgrad/kernels/failure.txt").write_text("their build failed with: a.cpp:1: error: x")
    found = run(bare, *IMPORT)
    assert found.returncode == 0
    assert found.stderr == (
        "handgrad:1: RuntimeWarning: no compiled kernels: their build failed with: a.cpp:1: error: "
        "x; running the reference, which is far slower (HANDGRAD_ENGINE=reference asks for that "
        "and silences this)\n"
    )


def test_without_kernels_every_command_says_so(bare: Path) -> None:
    found = run(bare, "-m", "handgrad", "info")
    assert found.returncode == 0
    assert found.stderr.startswith("handgrad: no compiled kernels: they were not compiled when ")
    assert found.stderr.count("\n") == 1
    assert "reference, because they were not compiled when handgrad was installed" in found.stdout


@pytest.mark.parametrize("arguments", [IMPORT, ("-m", "handgrad", "info")])
def test_asking_for_the_reference_silences_it(bare: Path, arguments: tuple[str, ...]) -> None:
    found = run(bare, *arguments, HANDGRAD_ENGINE="reference")
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.skipif(kernels.native is None, reason="the kernels were not compiled")
def test_only_compiled_instruction_sets_are_supported(bare: Path) -> None:
    from handgrad.kernels import _cpu

    name = kernels.instruction_set
    others = [other for other in _cpu.runs() if other != name]
    for module in (_cpu, kernels.native):
        shutil.copy(module.__file__, bare / "handgrad/kernels")
    found = run(bare, "-c", "from handgrad import kernels; print(kernels.supported)")
    assert (found.stdout, found.stderr) == (f"{(name,)}\n", "")
    for other in others:
        found = run(bare, "-m", "handgrad", "info", HANDGRAD_ISA=other)
        assert (found.returncode, found.stdout) == (2, "")
        assert found.stderr == (
            f"handgrad: HANDGRAD_ISA is {other!r}, which needs HANDGRAD_BUILD=all at install; "
            f"allowed on this machine: {name}\n"
        )
