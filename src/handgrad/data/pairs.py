"""Pairs of texts, one to be made from the other: translations, pronunciations, dates.

A file has one pair a line, source and target with a tab between them; lines that are blank or
start with # are passed over.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import find_file, read_lines
from handgrad.data.ragged import Ragged, Sequences, batch_order
from handgrad.data.sources import POOL
from handgrad.data.subwords import Subwords
from handgrad.data.tokens import END, PAD, START, Symbols, TextCodec
from handgrad.errors import ArgumentError, DataError
from handgrad.paths import StrPath

if TYPE_CHECKING:
    from jaxtyping import Int

Row = tuple[str, str]
#: Bytes of such a tuple and of its entry in a list.
_ROW: Final = 72

UNITS: Final = ("characters", "words", "subwords")
EXPECTED: Final = "a file with a source and a target in each line, a tab between them"


class PairBatch(NamedTuple):
    """The input of an encoder-decoder: sources end in </s>, inputs are <s> and the target.

    sources (N, S), inputs (N, T), padded with 0; source_lengths and target_lengths (N,).
    """

    sources: Int[Array, "N S"]
    source_lengths: Int[Array, "N"]
    inputs: Int[Array, "N T"]
    target_lengths: Int[Array, "N"]


@dataclass(frozen=True, repr=False)
class Pairs:
    """Pairs as text and as tokens; a `Source` of batches for the trainer.

    Batches are a `PairBatch` and the targets (N, T), the target and </s>; behind their end they
    are 0, which the loss has to ignore (`ignore_index=0`). Tokens are kept in as few bytes as the
    vocabulary needs, and are int64 in batches.
    """

    rows: list[Row]
    sources: Sequences
    inputs: Sequences
    targets: Sequences
    pool: int = POOL

    @classmethod
    def of(cls, rows: list[Row], source: TextCodec, target: TextCodec) -> Pairs:
        """These pairs of texts; <s> stands before every input, </s> behind source and target."""
        start, end = np.array([START]), np.array([END])
        sources, inputs, targets = _Tokens(source), _Tokens(target), _Tokens(target)
        for text, translation in rows:
            sources.add(source.encode(text), end)
            tokens = target.encode(translation)
            inputs.add(start, tokens)
            targets.add(tokens, end)
        return cls(rows, sources.done(), inputs.done(), targets.done())

    def __len__(self) -> int:
        return len(self.rows)

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        lengths = self.sources.lengths + self.targets.lengths
        return batch_order(lengths, batch_size, rng, self.pool)

    def every(self) -> Int[Array, "N"]:
        return np.arange(len(self))

    def gather(self, index: Int[Array, "B"]) -> tuple[PairBatch, Array]:
        batch = (s[index] for s in (self.sources, self.inputs, self.targets))
        sources, inputs, targets = (Ragged(b.x.astype(np.int64), b.lengths) for b in batch)
        return PairBatch(*sources, *inputs), targets.x

    def take(self, index: Int[Array, "B"]) -> Pairs:
        """The pairs at these indices, in this order."""
        return Pairs(
            [self.rows[i] for i in index],
            self.sources.take(index),
            self.inputs.take(index),
            self.targets.take(index),
            self.pool,
        )

    def __repr__(self) -> str:
        return f"<Pairs: {len(self.rows):,}, such as {self.rows[0]}>"

    def references(self) -> dict[str, tuple[str, ...]]:
        """Every source with all the targets that are right for it."""
        found: dict[str, list[str]] = {}
        for source, target in self.rows:
            found.setdefault(source, []).append(target)
        return {source: tuple(targets) for source, targets in found.items()}


class _Tokens:
    """Sequences of tokens as they are put together, in as few bytes as their vocabulary needs."""

    def __init__(self, tokenizer: TextCodec) -> None:
        self._dtype = np.min_scalar_type(tokenizer.size - 1)
        self._values = bytearray()
        self._lengths = array("q")

    def add(self, *parts: Array) -> None:
        """One sequence, of these parts."""
        self._values += np.concatenate(parts).astype(self._dtype).tobytes()
        self._lengths.append(sum(map(len, parts)))

    def done(self) -> Sequences:
        """All of them. Raises ArgumentError where there are none."""
        if not self._lengths:
            raise ArgumentError("Pairs: there are none; allowed: one pair or more")
        return Sequences(
            np.frombuffer(self._values, self._dtype), np.frombuffer(self._lengths, np.int64), PAD
        )


@dataclass(frozen=True)
class PairData:
    """Pairs divided into parts of which none has a source of another, with their tokenizers.

    left_out: how many pairs were too long and belong to no part.
    """

    name: str
    source: TextCodec
    target: TextCodec
    train: Pairs
    validation: Pairs
    test: Pairs
    left_out: int = 0


def find(name: str, path: StrPath | None = None) -> Path:
    """The file at `path` or where HANDGRAD_DATA points. Raises DataError where there is none."""
    return find_file(name, path, EXPECTED, (f"{name}.tsv", "*.tsv"))


def load(
    name: str,
    path: StrPath | None = None,
    seed: int = 0,
    *,
    unit: str = "characters",
    size: int = 8000,
    validation: float = 0.05,
    test: float = 0.05,
    longest: int | None = None,
) -> PairData:
    """The pairs in a tab-separated file, found at `path` or where HANDGRAD_DATA points.

    unit: "characters", "words" between spaces, or "subwords": `size` of them, shared by sources
    and targets. The vocabularies are those of the training part. See `divide` for the parts;
    longest: pairs with more tokens than this, marks included, are left out.
    Raises DataError naming the line that is wrong, ArgumentError for a setting that is.
    """
    if unit not in UNITS:
        raise ArgumentError(f"pairs: unit is {unit!r}; allowed: {', '.join(UNITS)}")
    file = find(name, path)
    parts = divide(read_pairs(file), validation, test, seed)

    def learn(train: list[Row]) -> tuple[TextCodec, TextCodec]:
        if unit == "subwords":
            shared = Subwords.learn((text for row in train for text in row), size)
            return shared, shared
        words = unit == "words"
        return (
            Symbols.learn((source for source, _ in train), words=words, marked=True),
            Symbols.learn((target for _, target in train), words=words, marked=True),
        )

    return assemble(name if path is None else file.stem, parts, learn, longest)


def read_pairs(path: Path) -> list[Row]:
    """The pairs of a tab-separated file, spaces around each text taken away.

    Raises DataError naming the line with another number of columns or with an empty one, and where
    the rows need more memory than the bound of the file.
    """
    rows = []
    held = 0
    for number, text, bound in read_lines(path, EXPECTED):
        line = text.removesuffix("\n")
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2:
            raise DataError(
                f"{path}: line {number:,} has {len(cells)} columns; "
                "expected 2, a source and a target with a tab between them"
            )
        if not all(cells):
            side = "target" if cells[0] else "source"
            raise DataError(f"{path}: line {number:,} has an empty {side}; expected text")
        rows.append((cells[0], cells[1]))
        held += _ROW + sys.getsizeof(cells[0]) + sys.getsizeof(cells[1])
        bound.check(held)
    if not rows:
        raise DataError(f"{path} has no pairs; expected {EXPECTED}")
    return rows


def divide(
    rows: Sequence[Row], validation: float, test: float, seed: int
) -> tuple[list[Row], list[Row], list[Row]]:
    """Training, validation and test part: these fractions of the distinct sources, by `seed`.

    All pairs of one source stay together, in the order of `rows`.
    Raises ArgumentError for impossible fractions, DataError where a part would be empty.
    """
    for name, fraction in (("validation", validation), ("test", test)):
        if not 0 < fraction < 1:
            raise ArgumentError(f"pairs: {name} is {fraction}; allowed: between 0 and 1")
    sources = list(dict.fromkeys(source for source, _ in rows))
    counts = [max(1, round(fraction * len(sources))) for fraction in (validation, test)]
    if sum(counts) >= len(sources):
        raise DataError(
            f"{len(sources)} different sources cannot be divided into {counts[0]} for validation, "
            f"{counts[1]} for testing and the rest for training; expected more"
        )
    shuffled = np.random.default_rng(seed).permutation(len(sources))
    part = {
        sources[i]: 1 if position < counts[0] else 2
        for position, i in enumerate(shuffled[: sum(counts)].tolist())
    }
    divided: tuple[list[Row], list[Row], list[Row]] = ([], [], [])
    for row in rows:
        divided[part.get(row[0], 0)].append(row)
    return divided


def assemble(
    name: str,
    parts: Iterable[list[Row]],
    learn: Callable[[list[Row]], tuple[TextCodec, TextCodec]],
    longest: int | None = None,
) -> PairData:
    """The data set of these three parts, with the tokenizers learned from the first.

    Raises DataError where `longest` leaves nothing of a part.
    """
    train, validation, test = parts
    source, target = learn(train)
    kept = []
    left_out = 0
    for part, rows in (("training", train), ("validation", validation), ("test", test)):
        pairs = Pairs.of(rows, source, target)
        if longest is not None:
            lengths = np.maximum(pairs.sources.lengths, pairs.targets.lengths)
            short = np.flatnonzero(lengths <= longest)
            if len(short) == 0:
                raise DataError(
                    f"{name}: every pair of the {part} part has more than {longest} tokens; "
                    f"expected some of at most {longest} (the shortest has {lengths.min()})"
                )
            left_out += len(rows) - len(short)
            pairs = pairs.take(short)
        kept.append(pairs)
    return PairData(name, source, target, kept[0], kept[1], kept[2], left_out)
