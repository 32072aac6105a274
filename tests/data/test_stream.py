"""Mapped files of tokens and shards of images, and batches that are gathered ahead."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.data import Blocks, stream
from handgrad.data.sources import Arrays
from handgrad.errors import ArgumentError, DataError

TEXTS = [np.arange(5), np.arange(40, 47), np.arange(90)]


def images(count: int = 25) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (count, 1, 4, 4), np.uint8), rng.integers(0, 3, count)


def shards(folder: Path) -> stream.Shards:
    x, y = images()
    assert stream.write_shards(folder, ((x[i : i + 9], y[i : i + 9]) for i in (0, 9, 18)), 10) == 25
    return stream.Shards(folder)


def test_tokens_are_blocks_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.npy"
    assert stream.write_tokens(path, iter(TEXTS)) == 102
    assert not list(tmp_path.glob("*.partial"))
    np.testing.assert_array_equal(np.load(path), np.concatenate(TEXTS).astype(np.uint16))
    mapped = stream.Tokens(path, 8)
    inside = Blocks(np.concatenate(TEXTS), 8)
    np.testing.assert_array_equal(mapped.every(), inside.every())
    (x,), y = mapped.gather(np.array([0, 3, 90]))
    (expected,), target = inside.gather(np.array([0, 3, 90]))
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, target)
    assert type(x) is np.ndarray
    assert x.dtype == np.int64
    last = stream.Tokens(path, 8, part=(0.5, 1))
    np.testing.assert_array_equal(last.gather(np.array([0]))[0][0][0], np.arange(39, 47))


def test_nothing_is_read_before_it_is_needed(tmp_path: Path) -> None:
    stream.write_tokens(tmp_path / "tokens.npy", TEXTS)
    array = stream.mapped(tmp_path / "tokens.npy")
    assert isinstance(array.base, np.memmap)
    assert not array.flags.writeable


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_long_arrays_are_written_in_pieces(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    pieces = [rng.normal(size=(n, *shape)).astype(np.float32) for n in (0, 1, 1000, 7)]
    assert stream.write_array(tmp_path / "x.npy", pieces) == 1008
    np.testing.assert_array_equal(stream.mapped(tmp_path / "x.npy"), np.concatenate(pieces))


def test_shards_are_one_array(tmp_path: Path) -> None:
    source = shards(tmp_path / "shards")
    x, y = images()
    assert len(list((tmp_path / "shards").iterdir())) == 6
    assert len(source) == 25
    index = np.array([24, 0, 9, 10, 19, 20, 9])
    (found,), targets = source.gather(index)
    np.testing.assert_array_equal(found, x[index] / np.float32(255))
    np.testing.assert_array_equal(targets, y[index])
    assert found.dtype == np.float32
    order = source.order(5, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(order), source.every())


def test_a_run_on_shards_is_that_on_arrays(tmp_path: Path) -> None:
    x, y = images()

    def weights(data: Any, **settings: Any) -> np.ndarray:
        rng = np.random.default_rng(0)
        model = hg.Sequential(hg.Flatten(), hg.Dense(16, 3, rng=rng))
        trainer = hg.Trainer(model, "cross_entropy", batch_size=4, progress="off", **settings)
        trainer.fit(*data, epochs=3)
        return trainer.parameters.buffer

    expected = weights(((x / np.float32(255)), y))
    source = shards(tmp_path / "shards")
    np.testing.assert_array_equal(weights((source,)), expected)
    for settings in ({}, {"accumulate": 2}):
        expected = weights((source,), **settings)
        found = weights((stream.Prefetch(source),), **settings)
        np.testing.assert_array_equal(found, expected)


class Counting:
    """A source that notes the thread of each batch."""

    def __init__(self) -> None:
        self.gathered: list[tuple[str, list[int]]] = []

    def __len__(self) -> int:
        return 10

    def order(self, batch_size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.permutation(10)

    def every(self) -> np.ndarray:
        return np.arange(10)

    def gather(self, index: np.ndarray) -> Any:
        self.gathered.append((threading.current_thread().name, index.tolist()))
        return (index.astype(np.float32),), index


@pytest.mark.parametrize(("first", "step", "size"), [(0, 3, 3), (1, 4, 2)])
def test_the_next_batch_is_gathered_ahead(first: int, step: int, size: int) -> None:
    """Also where a rank takes the second half of every batch, as (1, 4, 2) does."""
    counting = Counting()
    source = stream.Prefetch(counting)
    order = source.order(3, np.random.default_rng(0))
    for start in range(first, 10, step):
        index = order[start : start + size]
        (x,), _ = source.gather(index)
        np.testing.assert_array_equal(x, index)
    ahead = [index for name, index in counting.gathered if name.startswith("prefetch")]
    asked = [order[start : start + size].tolist() for start in range(first, 10, step)]
    assert asked[-1] in ahead
    if size == step:
        assert ahead == asked[1:]
    source.gather(np.array([4, 2]))
    assert counting.gathered[-1] == ("MainThread", [4, 2])


def test_fingerprints_know_the_content(tmp_path: Path) -> None:
    stream.write_tokens(tmp_path / "one.npy", TEXTS)
    stream.write_tokens(tmp_path / "other.npy", TEXTS[::-1])
    one, other = (stream.Tokens(tmp_path / f"{name}.npy", 8) for name in ("one", "other"))
    assert one.fingerprint() != other.fingerprint()
    assert stream.Prefetch(one).fingerprint() == one.fingerprint()
    source = shards(tmp_path / "shards")
    before = source.fingerprint()
    x, y = images()
    stream.write_shards(tmp_path / "shards", [(255 - x, y)], 10)
    assert stream.Shards(tmp_path / "shards").fingerprint() != before
    assert stream.Prefetch(Counting()).fingerprint() is not None


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with pytest.raises(DataError, match=r"x\.npy is missing"):
        stream.mapped(path)
    path.write_bytes(b"something else")
    with pytest.raises(DataError, match=r"no \.npy file"):
        stream.mapped(path)
    np.save(path, np.array(["a"]))
    with pytest.raises(DataError, match="no array of numbers"):
        stream.mapped(path)
    np.save(path, np.zeros((3, 3)))
    with pytest.raises(DataError, match="expected a row of whole numbers"):
        stream.Tokens(path, 2)
    with pytest.raises(DataError, match="nothing to write"):
        stream.write_array(path, [])
    with pytest.raises(DataError, match="a piece is of float64"):
        stream.write_array(path, [np.zeros(3, np.float32), np.zeros(3)])
    assert not list(tmp_path.glob("*.partial"))
    with pytest.raises(DataError, match="a token is 300; expected up to 255"):
        stream.write_tokens(path, [np.array([300])], np.uint8)
    stream.write_tokens(path, TEXTS)
    with pytest.raises(ArgumentError, match="part is"):
        stream.Tokens(path, 2, part=(0.5, 0.5))
    with pytest.raises(DataError, match="no shards"):
        stream.Shards(tmp_path)
    with pytest.raises(ArgumentError, match="size is 0"):
        stream.write_shards(tmp_path, [], 0)
    with pytest.raises(DataError, match="x has 2 examples and y 3"):
        stream.write_shards(tmp_path, [(np.zeros(2), np.zeros(3))])
    source = shards(tmp_path / "shards")
    np.save(tmp_path / "shards" / "y-00001.npy", np.zeros(3, np.int64))
    with pytest.raises(DataError, match="has 10 examples and y 3"):
        stream.Shards(tmp_path / "shards")
    np.save(tmp_path / "shards" / "y-00001.npy", np.zeros(10, np.float32))
    with pytest.raises(DataError, match="as the first"):
        stream.Shards(tmp_path / "shards")
    (tmp_path / "shards" / "y-00001.npy").unlink()
    with pytest.raises(DataError, match="y-00001"):
        stream.Shards(tmp_path / "shards")
    assert len(source) == 25
    with pytest.raises(ArgumentError, match="in memory already"):
        stream.Prefetch(Arrays(np.zeros((2, 2)), np.zeros(2)))
