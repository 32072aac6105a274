"""Programs that mpirun starts: the same training, and what is left of it when a rank is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.mpi import mpirun
from tests.mpi.mpirun import run

PROGRAM = ("-m", "tests.mpi.program")


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def assert_same_weights(one: Path, other: Path) -> None:
    found = weights(other)
    for name, array in weights(one).items():
        np.testing.assert_array_equal(array, found[name], err_msg=name)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process without MPI."""
    mpirun.command(1)
    folder = tmp_path_factory.mktemp("alone") / "run"
    assert run(0, *PROGRAM, folder)[0] == 0
    return folder


@pytest.mark.slow
def test_exact_runs_have_the_same_bits_with_and_without_mpi(alone: Path, tmp_path: Path) -> None:
    code, output, errors = run(3, *PROGRAM, tmp_path / "run", "--shard")
    assert (code, output, errors) == (0, "", "")
    assert_same_weights(tmp_path / "run", alone)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_lost_rank_ends_all_in_a_sentence_and_a_checkpoint(
    alone: Path, tmp_path: Path, victim: int
) -> None:
    folder = tmp_path / "killed"
    code, _, errors = run(2, *PROGRAM, folder, "--die", victim, 10, *["--shard"] * victim)
    assert code != 0
    said = [line for line in errors.splitlines() if "handgrad" in line]
    assert said == [
        "handgrad: a rank was lost; the last checkpoint is whole, continue with: "
        f"handgrad train --resume {folder}"
    ]
    assert not (folder / "summary.json").exists()
    assert run(2 * victim, *PROGRAM, folder, "--resume")[0] == 0
    assert_same_weights(folder, alone)


@pytest.mark.slow
def test_the_command_line_trains_on_ranks(tmp_path: Path) -> None:
    given = ("-m", "handgrad", "train", "digits", "--epochs", "1", "--out", "run")
    small = ("--set", "training.parts=2", "--set", "training.batch_size=256")
    code, output, errors = run(2, *given, *small, folder=tmp_path)
    assert (code, errors) == (0, "")
    assert output.count("run in run") == output.count("report: ") == output.count("epoch 1/1") == 1
    assert "parts = 2" in (tmp_path / "run" / "config.toml").read_text()
    code, output, errors = run(2, *given, folder=tmp_path)
    assert code == 2
    said = [line for line in errors.splitlines() if "handgrad" in line]
    assert said == ["handgrad: run: holds a finished run; allowed: a new or empty folder"]
