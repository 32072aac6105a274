"""Which programs a launcher started, and that nothing is imported for the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handgrad.errors import ArgumentError
from handgrad.mpi import Ranks
from handgrad.mpi.launch import launched, said
from handgrad.mpi.lost import LastWords
from handgrad.training import ALONE
from tests.mpi.mpirun import environment


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (1, 0)),
        ({"PMI_SIZE": "4", "PMI_RANK": "3"}, (4, 3)),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, (2, 1)),
        ({"SLURM_STEP_NUM_TASKS": "2", "PMIX_RANK": "1"}, (2, 1)),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}, (1, 0)),
        ({"PMI_SIZE": "4", "PMI_RANK": "3", "HANDGRAD_MPI": "0"}, (1, 0)),
        ({"PMI_RANK": "3"}, (1, 0)),
        ({"PMI_SIZE": "many", "PMI_RANK": "3"}, (1, 0)),
    ],
)
def test_launchers_say_how_many_ranks_there_are(
    environment: dict[str, str], expected: tuple[int, int]
) -> None:
    assert said(environment) == expected


def test_one_process_is_alone() -> None:
    with launched() as replicas:
        assert replicas is ALONE


def test_a_missing_mpi4py_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ArgumentError, match="mpi4py is not installed; allowed: after pip install"):
        Ranks()
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    with pytest.raises(ArgumentError, match="mpi4py"), launched():
        pass
    monkeypatch.setenv("PMI_RANK", "1")
    with pytest.raises(SystemExit, match="2"), launched():
        pass


def test_an_mpirun_of_another_mpi_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """There every process would be rank 0 of 1, and write into the same folder."""
    monkeypatch.setattr("handgrad.mpi.communicator.Ranks", lambda **settings: ALONE)
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    with pytest.raises(ArgumentError, match="2 ranks were started, and mpi4py finds 1"), launched():
        pass


def test_a_bucket_has_bytes() -> None:
    with pytest.raises(ArgumentError, match="bucket_bytes is 0; allowed: 1 or more"):
        Ranks(bucket_bytes=0)


_SPEAKER = """
import os, sys
from handgrad.mpi.lost import LastWords
words = LastWords()
words.set("first")
words.set("second")
if sys.argv[1] == "closed":
    words.close()
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "expected"), [("lost", "second\n"), ("closed", "")])
def test_last_words_are_said_by_who_did_not_take_them_back(how: str, expected: str) -> None:
    command = [sys.executable, "-P", "-c", _SPEAKER, how]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert found.stderr == expected


def test_nothing_to_say_starts_nothing() -> None:
    words = LastWords()
    words.set("")
    words.close()


_TRAINING = """
import sys
from handgrad.cli import main
sys.argv = ["handgrad", "train", "digits", "--epochs", "1", "--out", sys.argv[1], "--quiet",
            "--set", "training.batch_size=512"]
try:
    main()
finally:
    assert not {"mpi4py", "handgrad.mpi.communicator"} & set(sys.modules)
"""


@pytest.mark.slow
def test_training_without_mpirun_imports_no_mpi(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", _TRAINING, str(tmp_path / "run")]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
