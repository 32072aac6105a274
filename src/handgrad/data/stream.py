"""Data larger than memory: files that are mapped, of which only what a batch needs is read.

    count = stream.write_tokens("train.npy", (tokenizer.encode(text) for text in texts))
    train = stream.Prefetch(stream.Tokens("train.npy", size=1024))

    stream.write_shards("photos", batches_of_images_and_classes)
    train = stream.Prefetch(stream.Shards("photos"))

Each is a source of batches for `hg.Trainer.fit`. The files are NumPy's .npy, so that anything can
write them. Under MPI all ranks map the same files, and each reads its own examples.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from handgrad.arrays import Array
from handgrad.data.files import opened
from handgrad.data.sources import Arrays, Source
from handgrad.data.text import Blocks
from handgrad.errors import ArgumentError, DataError
from handgrad.paths import StrPath, as_path
from handgrad.writing import writing_binary

if TYPE_CHECKING:
    from jaxtyping import Int

#: Examples in a shard, where `write_shards` is told nothing else.
SHARD: Final = 4096
#: Bytes at each of a few positions that stand for the content of a file.
_SAMPLE: Final = 1 << 16
_SAMPLES: Final = 16


# -- files -----------------------------------------------------------------------------------------


def mapped(path: StrPath) -> Array:
    """The array of a .npy file, of which nothing is read yet; it cannot be written to.

    Raises DataError where there is none, or none of numbers.
    """
    what, file = "an array in a .npy file", as_path("mapped", path)
    with opened(file, what):  # which refuses what is no regular file; NumPy would wait
        try:
            found = np.lib.format.open_memmap(file, mode="r")
        except (ValueError, EOFError):
            raise DataError(f"{path} is no .npy file; expected {what}") from None
    if found.dtype.kind not in "biuf":
        raise DataError(f"{path} is no array of numbers; expected one in a .npy file")
    return np.asarray(found)


def write_array(path: StrPath, pieces: Iterable[Array]) -> int:
    """Write arrays of one type, one behind the other along the first axis, as one .npy file.

    They may come from a generator, and are in memory one at a time. Returns the length of all.
    Raises DataError where there is nothing to write, or a piece does not fit the first.
    """
    target = as_path("write_array", path)
    written = iter(pieces)
    first = next((np.asarray(piece) for piece in written), None)
    if first is None or first.ndim == 0 or first.dtype.kind not in "biuf":
        raise DataError(f"{path}: there is nothing to write; expected arrays of numbers")
    count = 0
    with writing_binary(target) as file:
        _write_header(file, first, 0)
        for piece in itertools.chain([first], written):
            array = np.asarray(piece)
            if array.dtype != first.dtype or array.shape[1:] != first.shape[1:]:
                raise DataError(
                    f"{path}: a piece is of {array.dtype} and has shape {array.shape}; "
                    f"expected {first.dtype} and (..., {str(first.shape[1:])[1:]}"
                )
            file.write(np.ascontiguousarray(array).data)
            count += len(array)
        file.seek(0)
        _write_header(file, first, count)
    return count


def _write_header(file: Any, like: Array, count: int) -> None:
    """The header of the whole array; NumPy leaves it room for a longer first axis."""
    header = {"descr": like.dtype.str, "fortran_order": False, "shape": (count, *like.shape[1:])}
    np.lib.format.write_array_header_1_0(file, header)


def write_tokens(path: StrPath, texts: Iterable[Array], dtype: DTypeLike = np.uint16) -> int:
    """Write texts as tokens, one behind the other, for `Tokens`; returns how many there are.

    dtype: of the file, large enough for the vocabulary. Raises DataError as `write_array`, and for
    a token that the type does not hold.
    """
    limits = np.iinfo(dtype)

    def fitting() -> Iterable[Array]:
        for text in texts:
            tokens = np.asarray(text)
            if tokens.size and not (limits.min <= tokens.min() and tokens.max() <= limits.max):
                raise DataError(
                    f"{path}: a token is {tokens.max()}; expected up to {limits.max}, or a larger "
                    "dtype"
                )
            yield tokens.astype(dtype)

    return write_array(path, fitting())


def write_shards(folder: StrPath, batches: Iterable[tuple[Array, Array]], size: int = SHARD) -> int:
    """Write batches (x, y) as pairs of files of `size` examples, for `Shards`; returns how many.

    Raises DataError as `write_array`, and where x and y differ in length.
    """
    if size < 1:
        raise ArgumentError(f"write_shards: size is {size}; allowed: 1 or more")
    place = as_path("write_shards", folder)
    place.mkdir(parents=True, exist_ok=True)
    kept: list[tuple[Array, Array]] = []
    waiting = count = number = 0
    for x, y in batches:
        if len(x) != len(y):
            raise DataError(f"{folder}: x has {len(x)} examples and y {len(y)}; expected as many")
        kept.append((np.asarray(x), np.asarray(y)))
        waiting += len(x)
        while waiting >= size:
            rest = _write_shard(place, number, kept, size)
            kept, waiting, number, count = [rest], len(rest[0]), number + 1, count + size
    if waiting:
        _write_shard(place, number, kept, waiting)
    return count + waiting


def _write_shard(
    folder: Path, number: int, kept: list[tuple[Array, Array]], size: int
) -> tuple[Array, Array]:
    """Write the first `size` examples and return the others."""
    x, y = (np.concatenate(each) for each in zip(*kept, strict=True))
    write_array(folder / f"x-{number:05}.npy", [x[:size]])
    write_array(folder / f"y-{number:05}.npy", [y[:size]])
    return x[size:], y[size:]


def _content(path: Path, array: Array) -> str:
    """A few pieces of a file, which stand for all of it: it may be larger than anyone reads."""
    found = hashlib.sha256()
    with opened(path, "the file that is mapped") as (file, _):
        end = max(os.fstat(file.fileno()).st_size - _SAMPLE, 0)
        for i in range(_SAMPLES):
            file.seek(end * i // (_SAMPLES - 1))
            found.update(file.read(_SAMPLE))
    return f"{array.dtype.str} {array.shape}, sample {found.hexdigest()}"


# -- sources ---------------------------------------------------------------------------------------


class Tokens(Blocks):
    """Blocks of `size` tokens of a mapped file, as `handgrad.data.Blocks` of an array.

    part: the share of the file from where to where, such as (0, 0.99) for training and (0.99, 1)
    for validation.
    Raises DataError where the file is no row of whole numbers or too short, ArgumentError for a
    share that is none.
    """

    def __init__(
        self,
        path: StrPath,
        size: int,
        count: int | None = None,
        *,
        part: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        tokens = mapped(path)
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise DataError(
                f"{path} has an array of {tokens.dtype} and shape {tokens.shape}; expected a row "
                "of whole numbers, as write_tokens writes it"
            )
        if not 0 <= part[0] < part[1] <= 1:
            raise ArgumentError(f"Tokens: part is {part}; allowed: two shares from 0 to 1, rising")
        first, last = (int(len(tokens) * share) for share in part)
        super().__init__(tokens[first:last], size, count)
        self.path = as_path("Tokens", path)
        self.part = part

    def fingerprint(self) -> object:
        """What stands for the content where a run is resumed."""
        return [_content(self.path, mapped(self.path)), list(self.part), self.size, len(self)]


class Shards:
    """Examples in pairs of mapped files x-00000.npy, y-00000.npy, …, as `write_shards` writes them.

    Whole numbers of one byte are pixels, and 255 becomes 1; all x arrive in `dtype`.
    Raises DataError where there is none, where one is missing, or where shapes differ.
    """

    def __init__(self, folder: StrPath, dtype: DTypeLike = np.float32) -> None:
        self.folder = as_path("Shards", folder)
        names = sorted(path.name[2:] for path in self.folder.glob("x-*.npy"))
        if not names:
            raise DataError(f"{folder} has no shards; expected x-00000.npy, y-00000.npy, …")
        self._x = [mapped(self.folder / f"x-{name}") for name in names]
        self._y = [mapped(self.folder / f"y-{name}") for name in names]
        self._names = names
        for name, x, y in zip(names, self._x, self._y, strict=True):
            if len(x) != len(y):
                raise DataError(
                    f"{self.folder / f'x-{name}'} has {len(x)} examples and y {len(y)}; expected "
                    "as many"
                )
            forms = [(each.dtype, each.shape[1:]) for each in (x, y)]
            expected = [(each.dtype, each.shape[1:]) for each in (self._x[0], self._y[0])]
            if forms != expected:
                raise DataError(
                    f"{self.folder / f'x-{name}'} is of {forms}; expected {expected}, as the first"
                )
        self._first = np.cumsum([0, *map(len, self._x)])
        self._dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return int(self._first[-1])

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        return rng.permutation(len(self))

    def every(self) -> Int[Array, "N"]:
        return np.arange(len(self))

    def gather(self, index: Int[Array, "B"]) -> tuple[tuple[Array], Array]:
        """((x,), y) in new arrays: x (B, …) and y (B, …)."""
        index = np.asarray(index)
        x = np.empty((len(index), *self._x[0].shape[1:]), self._x[0].dtype)
        y = np.empty((len(index), *self._y[0].shape[1:]), self._y[0].dtype)
        shard = np.searchsorted(self._first, index, side="right") - 1
        for number in np.unique(shard):
            here = shard == number
            rows = index[here] - self._first[number]
            x[here], y[here] = self._x[number][rows], self._y[number][rows]
        if x.dtype == np.uint8:
            return (np.divide(x, 255, dtype=self._dtype),), y
        return (x.astype(self._dtype, copy=False),), y

    def fingerprint(self) -> object:
        """What stands for the content where a run is resumed."""
        return [
            _content(self.folder / f"{part}-{name}", array)
            for part, arrays in (("x", self._x), ("y", self._y))
            for name, array in zip(self._names, arrays, strict=True)
        ]


class Prefetch:
    """Another source, whose next batch is gathered in a thread while this one is learned from.

    Batches are cut from the epoch's order at equal distances, as a rule; where the next one is not
    what was expected, it is gathered when it is asked for.
    Raises ArgumentError for a source that gathers every batch into the same memory.
    """

    def __init__(self, source: Source) -> None:
        if isinstance(source, Arrays):
            raise ArgumentError(
                "Prefetch: the source is in memory already; allowed: sources of new arrays, such "
                "as Tokens and Shards"
            )
        self.source = source
        self._thread = ThreadPoolExecutor(1, "prefetch")
        self._order: NDArray[Any] = np.empty(0, np.int64)
        self._position: int | None = None
        self._expected: tuple[NDArray[Any], Future[Any]] | None = None

    def __len__(self) -> int:
        return len(self.source)

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        self._order = np.ascontiguousarray(self.source.order(batch_size, rng))
        self._position = self._expected = None
        return self._order

    def every(self) -> Int[Array, "M"]:
        return self.source.every()

    def gather(self, index: Int[Array, "B"]) -> tuple[tuple[Array, ...], Array]:
        index = np.asarray(index)
        expected, self._expected = self._expected, None
        if expected is not None and np.array_equal(expected[0], index):
            found: tuple[tuple[Array, ...], Array] = expected[1].result()
        else:
            found = self.source.gather(index)
        self._look_ahead(index)
        return found

    def _look_ahead(self, index: NDArray[Any]) -> None:
        """Gather what comes behind this batch, at the distance of this one from the one before."""
        position, last = self._position_of(index), self._position
        self._position = position
        if position is None:
            return
        distance = len(index) if last is None or position <= last else position - last
        following = self._order[position + distance : position + distance + len(index)]
        if len(following):
            self._expected = following, self._thread.submit(self.source.gather, following)

    def _position_of(self, index: NDArray[Any]) -> int | None:
        """Where the epoch's order has this part of it; None for what is no part."""
        if index.base is not self._order or not index.flags.c_contiguous or not len(index):
            return None
        first = self._order.__array_interface__["data"][0]
        return int((index.__array_interface__["data"][0] - first) // self._order.itemsize)

    def fingerprint(self) -> object:
        """That of the source, which it changes nothing of."""
        own = getattr(self.source, "fingerprint", None)
        return own() if callable(own) else self.source
