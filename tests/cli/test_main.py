from __future__ import annotations

import os
import subprocess
import sys

import pytest

from handgrad import kernels

#: Every test here starts other processes.
pytestmark = pytest.mark.slow


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "handgrad", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_help_and_version():
    assert "train" in run("--help").stdout
    assert run("--version").returncode == 0


def test_an_error_is_one_sentence_and_code_2():
    result = run("evaluate", "/nowhere")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "handgrad: /nowhere: no run here (config.toml is missing); allowed: the folder of a run\n"
    )


def test_an_unknown_command_is_code_2():
    result = run("frobnicate")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("HANDGRAD_ENGINE", "HANDGRAD_ENGINE is 'abacus'; allowed: auto, kernels, reference"),
        (
            "HANDGRAD_THREADS",
            "HANDGRAD_THREADS is 'abacus'; allowed: a whole number from 1 to 1024",
        ),
        ("HANDGRAD_WINOGRAD", "HANDGRAD_WINOGRAD is 'abacus'; allowed: auto, 0, 2, 4"),
        pytest.param(
            "HANDGRAD_ISA",
            f"HANDGRAD_ISA is 'abacus'; allowed on this machine: {', '.join(kernels.supported)}",
            marks=pytest.mark.skipif(
                kernels.native is None, reason="the kernels were not compiled"
            ),
        ),
    ],
)
def test_a_wrong_environment_is_one_sentence_and_code_2(variable, message):
    result = run("info", **{variable: "abacus"})
    assert result.returncode == 2
    assert result.stderr == f"handgrad: {message}\n"
