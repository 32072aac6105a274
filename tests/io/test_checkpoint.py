"""Checkpoints are whole or absent, and bring back exactly what went in."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from handgrad.errors import RunError
from handgrad.io import checkpoint
from handgrad.io.checkpoint import (
    generator_state,
    load_arrays,
    load_checkpoint,
    restore_generator,
    save_arrays,
    save_checkpoint,
)

ARRAYS = {
    "model.0.weight": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "optimizer.step": np.asarray(7, dtype=np.int64),
    "empty": np.zeros((0, 4), dtype=np.float64),
}
STATE = {"epoch": 2, "sums": {"loss": 0.1 + 0.2}, "stop": False}


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint" / "latest.safetensors"
    assert load_checkpoint(path) is None
    save_checkpoint(path, ARRAYS, STATE)
    found = load_checkpoint(path)
    assert found is not None
    arrays, state = found
    assert state == {**STATE, "format": checkpoint.FORMAT}
    assert sorted(arrays) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].shape == array.shape
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "checkpoint" / "latest.safetensors"
    save_checkpoint(path, ARRAYS, STATE)
    before = path.read_bytes()

    def fail(*arguments: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        with pytest.raises(OSError, match="disk is full"):
            save_checkpoint(path, {"other": np.ones(3)}, {})
    assert path.read_bytes() == before
    save_checkpoint(path, {"other": np.ones(3)}, {})
    assert list(load_arrays(path)[0]) == ["other"]


@pytest.mark.parametrize("length", [0, 7, 40, -1])
def test_a_truncated_file_is_named(tmp_path: Path, length: int) -> None:
    path = tmp_path / "model.safetensors"
    save_arrays(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(RunError, match=r"model\.safetensors"):
        load_arrays(path)


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint" / "latest.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "FORMAT", 99)
        save_checkpoint(path, ARRAYS, STATE)
    with pytest.raises(RunError, match="99"):
        load_checkpoint(path)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.Philox, np.random.MT19937])
def test_generators_continue_after_json(tmp_path: Path, kind: type) -> None:
    generator = np.random.Generator(kind(3))
    generator.random(5, dtype=np.float32)
    path = tmp_path / "checkpoint" / "latest.safetensors"
    save_checkpoint(path, {}, {"generator": generator_state(generator)})
    expected = generator.normal(size=10)
    found = load_checkpoint(path)
    assert found is not None
    other = np.random.Generator(kind(99))
    restore_generator(other, found[1]["generator"])
    np.testing.assert_array_equal(other.normal(size=10), expected)


def test_another_kind_of_generator_is_refused() -> None:
    state = generator_state(np.random.Generator(np.random.Philox(0)))
    with pytest.raises(RunError, match="PCG64"):
        restore_generator(np.random.default_rng(0), state)
