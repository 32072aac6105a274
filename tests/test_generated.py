"""Lists of ops and layers are what `python -m tests.generated` writes, and packages are lazy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import handgrad as hg
from handgrad.ops import OPS
from tests.generated import FILES, ROOT


@pytest.mark.parametrize("path", FILES)
def test_a_list_is_what_the_modules_declare(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == FILES[path](), "run python -m tests.generated"


@pytest.mark.parametrize("package", [hg, hg.layers], ids=["handgrad", "layers"])
def test_every_name_of_a_stub_is_there(package):
    assert package.__all__ == dir(package)
    for name in package.__all__:
        assert getattr(package, name) is vars(package)[name]
    with pytest.raises(AttributeError, match="has no attribute 'Dens'"):
        getattr(package, "Dens")  # noqa: B009


def test_ops_are_the_modules_with_a_forward() -> None:
    assert tuple(name for name in OPS if callable(getattr(hg.ops, name).forward)) == OPS
    assert {"relu", "lstm", "attention"} < set(OPS)
    assert not {"activation", "arguments", "samples", "windows"} & set(OPS)


RIGHT = """
import numpy as np
import handgrad as hg


def forward(x, w):
    return x @ w, (x, w)


def backward(dy, cache):
    return dy @ cache[1].T, cache[0].T @ dy


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    assert hg.check((forward, backward), rng.normal(size=(3, 4)), rng.normal(size=(4, 2))).ok
"""


@pytest.mark.parametrize(
    "command", [[], ["-m", "handgrad", "check", "--shape", "x=3,4", "--shape", "w=4,2"]]
)
def test_a_right_backward_waits_for_no_search(command: list[str], tmp_path: Path) -> None:
    """Derivation, and what reads data, take longer to load than the verdict takes."""
    file = tmp_path / "right.py"
    file.write_text(RIGHT, "utf-8")
    whole = [sys.executable, "-X", "importtime", *command, str(file)]
    done = subprocess.run(whole, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "handgrad.checking.checker" in loaded
    late = ("checking.alignment", "deriving", "training", "recipes", "data", "program.primitives")
    names = (*(f"handgrad.{each}" for each in late), "scipy")
    assert not [each for each in loaded if each.startswith(names)]


def test_importing_handgrad_loads_nothing_else() -> None:
    program = "import sys; old = set(sys.modules); import handgrad; print(*set(sys.modules) - old)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert set(found.stdout.decode().split()) <= {"__future__", "handgrad", "handgrad.lazy"}
