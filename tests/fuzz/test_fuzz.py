"""The watchdog finds all that can go wrong, and a few hundred cases of every surface pass."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from fuzz.__main__ import main
from fuzz.harness.surface import generator, load, surfaces
from fuzz.harness.watchdog import Tally, watch, write
from handgrad import kernels
from tests.tolerances import HANGS

pytestmark = pytest.mark.slow

HURT = "tests.fuzz.hurt"


def numbers_by_way(count: int) -> dict[str, list[int]]:
    """The numbers of the cases that go each way."""
    found: dict[str, list[int]] = {}
    for number in range(count):
        found.setdefault(load(HURT).draw(generator(HURT, 0, number)).where, []).append(number)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the workers of `tally` are told, by which they are known from others'."""
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(scope="module")
def tally(place: Path) -> Tally:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        return watch(HURT, 0, seconds=HANGS, stop=13)


def test_every_way_of_going_wrong_is_found(tally: Tally) -> None:
    kinds = {where: kind for kind, where in tally.found}
    assert kinds == {
        "wrong": "silent mismatch",
        "raw": "raw KeyError",
        "hang": "hang",
        "crash": "crash",
        "leave": "crash",
        "grow": "memory",
    }


def test_every_case_is_run_and_every_fault_counted(tally: Tally) -> None:
    assert tally.cases == 13
    times = {found.where: found.times for found in tally.found.values()}
    expected = {way: len(numbers) for way, numbers in numbers_by_way(13).items()}
    del expected["fine"]
    assert times == expected


def test_a_fault_says_how_it_ended_and_how_to_run_it_again(tally: Tally, tmp_path: Path) -> None:
    texts = {path.stem: path.read_text() for path in write(tally, tmp_path)}
    assert len(texts) == len(tally.found)
    for text in texts.values():
        ast.parse(text)
        assert "--seed 0 --case " in text
    found = {where: tally.found[kind, where] for kind, where in tally.found}
    assert "SIGABRT" in found["crash"].message
    assert "in crash" in found["crash"].message, "faulthandler says where"
    assert "in hang" in found["hang"].message
    assert "exit code 3" in found["leave"].message
    assert "grew by" in found["grow"].message
    assert found["hang"].program == "print('hang')"


def test_no_process_is_left_behind(tally: Tally, place: Path) -> None:
    listed = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True)
    assert not [line for line in listed.stdout.splitlines() if str(place) in line]


def test_time_ends_a_run() -> None:
    tally = watch(HURT, 0, seconds=0.5, stop=10**9)
    assert tally.cases < 10**9


def test_the_same_number_gives_the_same_case() -> None:
    for name in surfaces():
        one, other = (load(name).draw(generator(name, 3, 5)) for _ in range(2))
        assert one.where == other.where
        assert one.program() == other.program()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that waits for its turn is no hang; a surface has the patience of a quiet machine."""
    monkeypatch.setenv("HANDGRAD_FUZZ_PATIENCE", "20")


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", surfaces())
def test_some_cases_of_every_surface_pass(name: str, tmp_path: Path) -> None:
    tally = watch(name, 11, seconds=8.0, stop=400)
    if not tally.cases:  # under load the worker needs as long to start
        tally = watch(name, 11, seconds=HANGS, stop=1)
    write(tally, tmp_path)
    assert tally.cases > 0
    assert not tally.found, "\n\n".join(found.text() for found in tally.found.values())


@pytest.mark.usefixtures("patient")
@pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")
def test_native_functions_touch_no_memory_but_their_own(tmp_path: Path) -> None:
    tally = watch("bindings", 12, seconds=HANGS, stop=20000)
    write(tally, tmp_path)
    assert tally.cases == 20000
    assert not tally.found, "\n\n".join(found.text() for found in tally.found.values())


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--minutes", "1", "--calls", "3"],
        ["--minutes", "0"],
        ["--minutes", "nan"],
        ["--hours", "-1"],
        ["--calls", "x"],
        ["--calls", "3", "--only", "nothing"],
        ["--calls", "3", "--jobs", "0"],
        ["--calls", "3", "--seed", "-1"],
        ["--case", "3"],
        ["--guided", "--calls", "3"],
        ["--nothing"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_exit_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_exit_codes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fuzz.__main__.surfaces", lambda: [HURT])
    ways = numbers_by_way(50)
    assert main(["--only", HURT, "--case", str(ways["fine"][0])]) == 0
    assert main(["--only", HURT, "--case", str(ways["wrong"][0])]) == 1
    assert ways["leave"][0] == 0
    assert main(["--only", HURT, "--calls", "1"]) == 1
    assert len(list((tmp_path / "fuzz-found").rglob("*.py"))) == 1


def test_list_names_every_surface() -> None:
    root = Path(__file__).parents[2]
    search = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    listed = subprocess.run(
        [sys.executable, "-m", "fuzz", "--list"],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": search},
    )
    names = [line.partition(":")[0] for line in listed.stdout.splitlines()]
    assert names == surfaces()
    assert "ops" in names


def test_a_generator_depends_on_surface_seed_and_number() -> None:
    drawn = {
        int(generator(name, seed, number).integers(2**62))
        for name in ("a", "b")
        for seed in (0, 1)
        for number in (0, 1)
    }
    assert len(drawn) == 8
    assert isinstance(generator("a", 0, 0), np.random.Generator)
