from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from handgrad.cli.app import app


@pytest.fixture(scope="session")
def handgrad() -> Callable[..., Result]:
    """Runs the command line in this process."""
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="session")
def digits_run(handgrad, tmp_path_factory) -> Path:
    """The folder of a run of `digits`, one epoch long."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    result = handgrad("train", "digits", "--epochs", 1, "--seed", 3, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def refused(handgrad) -> Callable[..., str]:
    """Runs a command that has to end in one sentence on stderr and exit code 2; returns it."""

    def run(*arguments: object) -> str:
        result = handgrad(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stderr.startswith("handgrad: ")
        assert result.stderr.count("\n") == 1
        assert "Traceback" not in result.output
        return result.stderr

    return run
