from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from handgrad.cli.app import app
from handgrad.unforeseen import PREFIX


@pytest.fixture(scope="session")
def handgrad() -> Callable[..., Result]:
    """Runs the command line in this process; an exception that is left, exit code 70, is raised."""
    runner = CliRunner()

    def run(*arguments: object) -> Result:
        result = runner.invoke(app, [str(argument) for argument in arguments])
        if not isinstance(result.exception, SystemExit | None):
            raise result.exception
        return result

    return run


@pytest.fixture(scope="session")
def reports(tmp_path_factory) -> Iterator[Path]:
    """The folder of what processes started here report when they end with exit code 70."""
    folder = tmp_path_factory.mktemp("reports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def never_a_fault(reports) -> Iterator[None]:
    """Fails a test during which a command ended with exit code 70."""
    yield
    left = []
    for file in reports.glob(f"{PREFIX}*.txt"):
        left.append(file.read_text("utf-8"))
        file.unlink()  # so that only this test fails
    assert not left, left[0]


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
