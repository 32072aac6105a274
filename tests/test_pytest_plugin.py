from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEADER = """\
import numpy as np


def forward(x):
    return x * x, x


def backward(dy, x):
    return dy * x


X = np.random.default_rng(0).standard_normal((5, 3))


"""


@pytest.fixture
def run(tmp_path) -> Callable[[str], str]:
    """Runs a file of tests in a process of its own, with no other plugin; returns the output."""

    def run(text: str) -> str:
        (tmp_path / "test_file.py").write_text(text)
        result = subprocess.run(
            [
                *(sys.executable, "-W", "error", "-m", "pytest", "-q"),
                *("-p", "no:cacheprovider", "-p", "handgrad.pytest_plugin"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTEST_ADDOPTS": "",
            },
            check=False,
        )
        return result.stdout + result.stderr

    return run


def test_a_failure_is_the_report_below_the_line_of_the_test(run):
    output = run(f"{HEADER}def test_mine(gradcheck):\n    gradcheck((forward, backward), X)\n")
    assert ">       gradcheck((forward, backward), X)\nE " in output
    assert "✗ dx: " in output
    assert "1 failed" in output
    assert "entry.py" not in output
    assert "pytest_plugin.py" not in output


def test_misuse_is_its_sentence(run):
    output = run("def test_mine(gradcheck):\n    gradcheck(3)\n")
    assert ">       gradcheck(3)\nE       handgrad.errors.ArgumentError: check: " in output
    assert "pytest_plugin.py" not in output


def test_the_report_comes_back_and_arguments_go_on(run):
    text = (
        "def test_mine(gradcheck):\n"
        "    report = gradcheck(lambda dy, cache: dy * (1 - cache.y**2), like='tanh', seed=3)\n"
        "    assert (report.ok, report.like, report.seed) == (True, 'tanh', 3)\n"
    )
    assert "1 passed" in run(text)


def test_the_seed_is_of_the_test(run):
    text = (
        "def test_one(gradcheck):\n"
        "    assert gradcheck('tanh').seed == gradcheck('tanh').seed == 388373926\n\n\n"
        "def test_two(gradcheck):\n"
        "    assert gradcheck('tanh').seed != 388373926\n"
    )
    output = run(text)
    assert "2 passed" in output, output


def test_the_start_of_pytest_imports_nothing_heavy(run):
    text = (
        "import sys\n\n\ndef test_start():\n"
        "    assert not {'numpy', 'handgrad.checking', 'rich'} & set(sys.modules)\n"
    )
    output = run(text)
    assert "1 passed" in output, output


def test_an_installed_handgrad_has_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module = import_module(project["entry-points"]["pytest11"]["handgrad"])
    assert hasattr(module, "gradcheck")
