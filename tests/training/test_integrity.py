"""A changed bit in any file of a run is named, and so is a missing file or another run's."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.errors import HandgradWarning, RunError
from handgrad.io import checkpoint
from handgrad.io.checkpoint import load_checkpoint, save_checkpoint
from handgrad.io.checksums import BLANK, with_checksum
from handgrad.training import resume_run, start_run, train
from handgrad.training.folder import Run
from handgrad.writing import write_atomically
from tests.training import problem

FILES = (
    "config.toml",
    "metrics.jsonl",
    "metrics.csv",
    "checkpoint/latest.safetensors",
    "model.safetensors",
    "report.html",
    "notes.json",
    "summary.json",
)


def write_notes(folder: Path) -> None:
    (folder / "notes.json").write_text('{"what": "belongs to the run"}')


def make(folder: Path, **settings: Any) -> Path:
    train(**problem.parts(epochs=1, **settings), out=folder, prepare=write_notes)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("runs") / "finished")


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def resume(folder: Path) -> None:
    train(**problem.parts(epochs=1), out=folder, resume=True, prepare=write_notes)


def assert_named(folder: Path, name: str) -> None:
    """By what evaluate, predict, generate and translate do first, and by a resumption."""
    for use in (lambda: Run(folder).load_model(), lambda: resume(folder)):
        with pytest.raises(RunError) as refused:
            use()
        message = str(refused.value)
        assert name in message
        assert "\n" not in message


def test_an_undamaged_run_is_accepted(finished: Path) -> None:
    assert set(json.loads((finished / "summary.json").read_text())["files"]) == set(FILES[:-1])
    resume(finished)
    Run(finished).load_model()


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_named(copy: Path, name: str) -> None:
    content = (copy / name).read_bytes()
    rng = np.random.default_rng(len(content))
    offsets = {0, len(content) - 1, *rng.integers(0, len(content), 10).tolist()}
    for offset in offsets:
        damaged = bytearray(content)
        damaged[offset] ^= 1 << int(rng.integers(8))
        (copy / name).write_bytes(damaged)
        assert_named(copy, name)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_longer_or_empty_file_is_named(copy: Path, name: str) -> None:
    content = (copy / name).read_bytes()
    for damaged in (content[:-1], content[: len(content) // 2], b"", content + b"\n"):
        (copy / name).write_bytes(damaged)
        assert_named(copy, name)


@pytest.mark.parametrize("name", FILES[:-1])
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    assert_named(copy, name)


def test_a_run_without_its_summary_is_not_finished(copy: Path, finished: Path) -> None:
    (copy / "summary.json").unlink()
    with pytest.warns(HandgradWarning, match=r"is not finished: .* after epoch 1; to finish it"):
        last = Run(copy).load_model()
    whole = Run(finished).load_model()
    assert last[1]["handgrad"] == whole[1]["handgrad"]
    assert {name: a.tolist() for name, a in last[0].items()} == {
        name: a.tolist() for name, a in whole[0].items()
    }
    resume(copy)
    for name, array in Run(finished).load_model()[0].items():
        np.testing.assert_array_equal(Run(copy).load_model()[0][name], array)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_run_is_named(copy: Path, tmp_path: Path, name: str) -> None:
    other = make(tmp_path / "other")
    shutil.copy(other / name, copy / name)
    if name == "notes.json":  # it is the same in both
        return
    with pytest.raises(RunError):
        Run(copy).load_model()
    with pytest.raises(RunError):
        resume(copy)


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    os.mkfifo(copy / name)
    assert_named(copy, name)


def test_an_unfinished_run_checks_its_checkpoint_and_its_metrics(copy: Path) -> None:
    (copy / "summary.json").unlink()
    for name in ("checkpoint/latest.safetensors", "metrics.jsonl", "notes.json", "config.toml"):
        content = (copy / name).read_bytes()
        damaged = bytearray(content)
        damaged[len(content) // 2] ^= 4
        (copy / name).write_bytes(damaged)
        with pytest.raises(RunError, match=Path(name).name.replace(".", r"\.")):
            resume(copy)
        (copy / name).write_bytes(content)
    (copy / "checkpoint/latest.safetensors").unlink()
    with pytest.raises(RunError, match=r"latest\.safetensors is missing"):
        resume(copy)


EDITS: dict[str, Any] = {
    "epoch": [None, "1", -1, 1.5, True, [], 10**30],
    "position": [-1, "x", 10**9],
    "settings": [{}, [], {"optimizer.lr": 0.1}],
    "sums": [{}, [], {"examples": 1}, {"loss": "x"}],
    "stop": [0, "false"],
    "callbacks": [[], [1], [{}], {}],
    "generators": [{}, {"shuffling": 1}, {"shuffling": {}, "augmenting": {}, "model": {}}],
    "identity": [{}, 3],
    "metrics": [{}, {"length": -1, "sha256": ""}, {"length": 5, "sha256": 5}],
    "format": [1, "2", None],
}


@pytest.mark.parametrize("key", EDITS)
def test_a_state_with_a_right_checksum_and_wrong_values_is_one_sentence(
    copy: Path, key: str
) -> None:
    (copy / "summary.json").unlink()
    path = copy / "checkpoint" / "latest.safetensors"
    run = Run(copy)
    run.read_config()
    saved = load_checkpoint(path, run.id)
    assert saved is not None
    arrays, state = saved
    without = {name: value for name, value in state.items() if name != key}
    for edited in [without, *({**state, key: value} for value in EDITS[key])]:
        save_checkpoint(path, arrays, edited, run.id)
        if key == "format" and "format" not in edited:
            continue
        with pytest.raises(RunError):
            resume(copy)
    save_checkpoint(path, arrays, {**state, "surplus": 1}, run.id)
    with pytest.raises(RunError, match="surplus is unknown"):
        resume(copy)


def edited(copy: Path, **changes: Any) -> Path:
    """The run with other entries in the state of its checkpoint, under a right checksum."""
    (copy / "summary.json").unlink()
    run = Run(copy)
    run.read_config()
    saved = load_checkpoint(run.checkpoint, run.id)
    assert saved is not None
    arrays, state = saved
    for key, value in changes.items():
        state[key] = {**state[key], **value} if isinstance(value, dict) else value
    save_checkpoint(run.checkpoint, arrays, state, run.id)
    return copy


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("optimizer.lr", -0.1),
        ("optimizer.lr", "0.1"),
        ("optimizer.lr", True),
        ("optimizer.lr", 10**400),
        ("optimizer.lr", None),
        ("optimizer.lr", {"dtype": "float32", "value": -1}),
        ("optimizer.lr", {"dtype": "float32", "value": 1e300}),
        ("optimizer.lr", {"dtype": "object", "value": 1}),
        ("optimizer.lr", {"dtype": "int64", "value": 1.5}),
        ("optimizer.lr", {"dtype": "int64"}),
        ("clip_norm", 0),
        ("clip_norm", "x"),
        ("optimizer.hyperparameters.beta1", None),
        ("optimizer.hyperparameters.beta1", []),
        ("optimizer.step", 5),
        ("optimizer._slots", 5),
        ("optimizer.hyperparameters.x", 5),
        ("model", 5),
    ],
)
def test_settings_that_no_training_comes_to_are_named(copy: Path, path: str, value: Any) -> None:
    with pytest.raises(RunError, match=rf"settings\.{path} is "):
        resume(edited(copy, settings={path: value}))


@pytest.mark.parametrize("position", [121, 10**9])
def test_a_position_behind_the_data_is_refused(copy: Path, position: int) -> None:
    with pytest.raises(RunError, match=f"position is {position}; allowed: 0 to 120"):
        resume(edited(copy, epoch=0, position=position))


def test_arrays_of_a_checkpoint_are_those_of_the_training(copy: Path) -> None:
    (copy / "summary.json").unlink()
    path = copy / "checkpoint" / "latest.safetensors"
    run = Run(copy)
    run.read_config()
    saved = load_checkpoint(path, run.id)
    assert saved is not None
    arrays, state = saved
    weight = arrays["model.out.weight"]
    for name, array in {
        "model.out.weight": weight.astype(np.float64),
        "optimizer.m.out.weight": weight[:1],
        "optimizer.step": np.zeros(2, np.int64),
        "surplus": weight,
    }.items():
        save_checkpoint(path, {**arrays, name: array}, state, run.id)
        with pytest.raises(RunError, match=f"does not fit .*{name}"):
            resume(copy)
    for name in ("model.out.weight", "optimizer.m.out.weight", "optimizer.step"):
        rest = {key: array for key, array in arrays.items() if key != name}
        save_checkpoint(path, rest, state, run.id)
        with pytest.raises(RunError, match=f"{name} is missing"):
            resume(copy)


def test_a_checkpoint_of_format_1_is_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / "summary.json").unlink()
    run = Run(copy)
    run.read_config()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "FORMAT", 1)
        save_checkpoint(copy / "checkpoint" / "latest.safetensors", {}, {}, run.id)
    with pytest.raises(RunError, match="checkpoint format is 1; allowed: 4"):
        resume_run(copy).load()


def test_checksums_stand_in_their_files(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_atomically(path, *with_checksum(b"sum " + BLANK + b" end", b"sum "))
    assert path.read_bytes()[4:68] != BLANK
    assert list(tmp_path.iterdir()) == [path]


# -- one writer, and no way out of the folder ------------------------------------------------------


def test_planted_links_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".lock").symlink_to(precious)
    with pytest.raises(RunError, match="cannot be written to"):
        start_run(folder, "a = 1\n")
    (folder / ".lock").unlink()
    (folder / ".config.toml.partial").symlink_to(precious)
    (folder / ".config.toml.0123456789abcdef.partial").symlink_to(precious)
    with start_run(folder, "a = 1\n") as run:
        (folder / "metrics.jsonl").symlink_to(precious)
        with pytest.raises(RunError, match=r"metrics\.jsonl cannot be written"):
            run.log({"kind": "epoch"})
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("name", [*FILES, "checkpoint"])
def test_a_file_moved_away_and_linked_to_is_refused(name: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "run")
    (folder / name).rename(tmp_path / "moved")
    (folder / name).symlink_to(tmp_path / "moved")
    with pytest.raises(RunError, match=r"not a regular file|is a symbolic link"):
        Run(folder).load_model()


def test_a_planted_link_is_not_replaced(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    with start_run(tmp_path / "run", "") as run:
        run.model.symlink_to(precious)
        with pytest.raises(RunError, match="not a regular file"):
            run.save_model({"w": np.zeros(2)})
        assert run.model.is_symlink()
    assert precious.read_text() == "mine"


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    with start_run(tmp_path / "run", ""):
        pass
    left = tmp_path / "run" / ".model.safetensors.0123456789abcdef.partial"
    left.write_bytes(b"half")
    other = tmp_path / "run" / ".notes.partial"
    other.touch()
    with resume_run(tmp_path / "run"):
        assert not left.exists()
        assert other.exists()


def test_a_child_of_a_fork_does_not_hold_the_lock(tmp_path: Path) -> None:
    run = start_run(tmp_path / "run", "")
    reading, writing = os.pipe()
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.write(there, b"!")
        os.read(reading, 1)
        os._exit(0)
    try:
        os.close(reading)
        assert os.read(here, 1) == b"!"
        with pytest.raises(RunError, match="in use"):
            resume_run(tmp_path / "run")
        run.close()
        resume_run(tmp_path / "run").close()
    finally:
        for end in (writing, here, there):
            os.close(end)
        os.waitpid(child, 0)


def test_metrics_that_another_program_writes_to_are_refused(tmp_path: Path) -> None:
    with start_run(tmp_path / "run", "") as run:
        run.log({"kind": "epoch"})
        with open(run.metrics, "ab") as file:
            file.write(b"{}\n")
        with pytest.raises(RunError, match="was changed while the run was writing"):
            run.save({}, {})


@pytest.mark.parametrize("name", ["x" * 300, "with\0null"])
def test_impossible_names_of_a_folder_are_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError):
        start_run(tmp_path / name, "")
    with pytest.raises(RunError):
        resume_run(tmp_path / name)


def test_a_folder_that_vanishes_is_one_sentence(tmp_path: Path) -> None:
    with start_run(tmp_path / "run", "") as run:
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(RunError, match=r"cannot be written: No such file or directory$"):
            run.save({}, {})


def test_what_cannot_be_written_says_to_go_on_where_there_is_a_checkpoint(tmp_path: Path) -> None:
    with start_run(tmp_path / "run", "") as run:
        with pytest.raises(RunError, match=r"cannot be written: full$"), run.reporting(run.model):
            raise OSError("full")
        run.save({}, {})
        with (
            pytest.raises(RunError, match=r"full; the last checkpoint is as it was, continue"),
            run.reporting(run.model),
        ):
            raise OSError("full")
