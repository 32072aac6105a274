"""Tokens: characters, words or bytes as the integers a model takes.

A tokenizer turns text into integers from 0 to below `size` and back, and is kept in one JSON file,
so that a trained run needs nothing else; `load_tokenizer` reads every kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import DataError
from handgrad.escaping import quoted
from handgrad.paths import StrPath, as_path
from handgrad.writing import write_file

if TYPE_CHECKING:
    from jaxtyping import Int

#: The first tokens of a vocabulary with beginnings and ends, and their numbers.
MARKS: Final = ("<pad>", "<s>", "</s>", "<unk>")
PAD, START, END, UNKNOWN = range(4)


class TextCodec(Protocol):
    """Text to numbers and back: `Symbols`, `Bytes` or `Subwords`."""

    @property
    def size(self) -> int:
        """The number of tokens."""

    def encode(self, text: str) -> Int[Array, "T"]:
        """The numbers of its tokens, (T,) int64. Raises DataError where one has none."""

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of these tokens; marks have none."""

    def to_json(self) -> str:
        """The text that `load_tokenizer` reads from a file."""

    def save(self, path: StrPath) -> None:
        """Write what `load_tokenizer` reads."""


class Symbols:
    """Characters, or words with spaces between them, by their index in `symbols`.

    With `MARKS` at the start of `symbols`, what is unknown becomes <unk>; without them it is an
    error that names it.
    """

    def __init__(self, symbols: Sequence[str], *, words: bool = False) -> None:
        self.symbols = tuple(symbols)
        self.words = words
        self.marked = self.symbols[: len(MARKS)] == MARKS
        self._number = {symbol: i for i, symbol in enumerate(self.symbols)}

    @classmethod
    def learn(cls, texts: Iterable[str], *, words: bool = False, marked: bool = False) -> Symbols:
        """Every character (or word) of these texts, sorted; after the marks where `marked`.

        Raises DataError where there is none.
        """
        found: set[str] = set()
        for text in texts:
            found.update(text.split() if words else text)
        if not found:
            raise DataError("the texts are empty; expected at least one character")
        return cls((*(MARKS if marked else ()), *sorted(found)), words=words)

    @property
    def size(self) -> int:
        """The number of symbols, marks included."""
        return len(self.symbols)

    def encode(self, text: str) -> Int[Array, "T"]:
        """The number of each symbol, (T,) int64. Raises DataError for one that has none."""
        parts = text.split() if self.words else text
        if self.marked:
            numbers = [self._number.get(part, UNKNOWN) for part in parts]
        else:
            try:
                numbers = [self._number[part] for part in parts]
            except KeyError as error:
                unknown = error.args[0]
                raise DataError(
                    f"{quoted(unknown)} at position {list(parts).index(unknown)} is not in the "
                    f"vocabulary; expected only its {self.size} "
                    f"{'words' if self.words else 'characters'}"
                ) from None
        return np.array(numbers, dtype=np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        """The symbols of these tokens put together; marks have none."""
        first = UNKNOWN if self.marked else 0
        parts = (self.symbols[token] for token in tokens if token >= first)
        return (" " if self.words else "").join(parts)

    def to_json(self) -> str:
        """The text that `load_tokenizer` reads from a file."""
        content = {"tokens": "words" if self.words else "characters", "symbols": self.symbols}
        return json.dumps(content, ensure_ascii=False)

    def save(self, path: StrPath) -> None:
        """Write what `load_tokenizer` reads."""
        write_file(as_path("save", path), self.to_json().encode())


class Bytes:
    """The bytes of UTF-8: 256 tokens, for which no text is unknown."""

    size = 256

    def encode(self, text: str) -> Int[Array, "T"]:
        """The value of each byte, (T,) int64."""
        return np.frombuffer(text.encode("utf-8"), np.uint8).astype(np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text; bytes that are no UTF-8, as half a character is, become U+FFFD."""
        return bytes(int(token) for token in tokens).decode("utf-8", errors="replace")

    def to_json(self) -> str:
        """The text that `load_tokenizer` reads from a file."""
        return json.dumps({"tokens": "bytes"})

    def save(self, path: StrPath) -> None:
        """Write what `load_tokenizer` reads."""
        write_file(as_path("save", path), self.to_json().encode())
