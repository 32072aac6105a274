"""A compiled module that is damaged or foreign, or has no room: one sentence."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import handgrad
from handgrad import kernels
from tests.threads.program import needs_kernels, needs_linux, run

pytestmark = [needs_kernels, needs_linux]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package that may be damaged."""
    source = Path(handgrad.__file__).parent
    target = tmp_path / "handgrad"
    ignored = shutil.ignore_patterns("__pycache__", "*.cpp", "*.h", "_native*")
    shutil.copytree(source, target, ignore=ignored)
    shutil.copy(str(kernels.native.__file__), target / "kernels")
    return target


def import_in(folder: Path, prepare: str = "") -> tuple[int, str]:
    """The exit code of `handgrad info` there, and what it wrote on stderr."""
    program = (
        f"{prepare}\nimport sys; sys.argv[1:] = ['info']\nfrom handgrad.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder.parent,
        env={"PYTHONPATH": str(folder.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: 2 * len(data) // 3])


def cut_to_little(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:30])


def overwrite(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[:64] = bytes(64)
    file.write_bytes(bytes(data))


def of_another_machine(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[18:20] = (0xF3).to_bytes(2, "little")
    file.write_bytes(bytes(data))


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("which", ["_cpu", "_native"])
@pytest.mark.parametrize("damage", [cut, cut_to_little, overwrite, of_another_machine, empty])
def test_a_damaged_module_is_one_sentence(
    copy: Path, damage: Callable[[Path], None], which: str
) -> None:
    (file,) = (copy / "kernels").glob(f"{which}*.so")
    damage(file)
    code, said = import_in(copy)
    assert code == 2, said
    assert said.startswith("handgrad: the compiled kernels cannot be loaded from ")
    assert file.name in said
    assert said.count("\n") == 1


def test_modules_of_another_python_are_named(copy: Path) -> None:
    for file in (copy / "kernels").glob("*.so"):
        name = file.name.partition(".")[0]
        file.rename(file.with_name(f"{name}.cpython-39-x86_64-linux-gnu.so"))
    program = "from handgrad import kernels; assert kernels.native is None; print(kernels.reason)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=copy.parent,
        env={"PYTHONPATH": str(copy.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "another Python (.cpython-39-x86_64-linux-gnu.so" in done.stdout


LIMIT = """
import resource
import numpy
from handgrad.errors import EngineError
with open("/proc/self/status") as file:
    used = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 20), resource.RLIM_INFINITY))
try:
    import handgrad.kernels
except EngineError as error:
    print(error)
"""


def test_no_room_for_the_modules_is_one_sentence() -> None:
    said = run("-c", LIMIT)
    assert said.startswith("the compiled kernels cannot be loaded from ")
    assert said.count("\n") == 1
