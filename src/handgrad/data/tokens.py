"""Tokens: characters, words or bytes as the integers a model takes.

A tokenizer turns text into integers from 0 to below `size` and back, and is kept in one JSON file,
so that a trained run needs nothing else; `load_tokenizer` reads every kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import StrPath, as_path, parse_json, read_json
from handgrad.errors import DataError
from handgrad.writing import write_file

if TYPE_CHECKING:
    from jaxtyping import Int

#: The first tokens of a vocabulary with beginnings and ends, and their numbers.
MARKS: Final = ("<pad>", "<s>", "</s>", "<unk>")
PAD, START, END, UNKNOWN = range(4)

_TOKENIZER: Final = "a tokenizer saved by handgrad or by the tokenizers package"


class Tokenizer(Protocol):
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
                    f"{unknown!r} at position {list(parts).index(unknown)} is not in the "
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


def load_tokenizer(path: StrPath) -> Tokenizer:
    """The tokenizer that was saved in `path`. Raises DataError where it holds something else."""
    file = as_path("load_tokenizer", path)
    return _tokenizer(file, *read_json(file, _TOKENIZER))


def parse_tokenizer(path: Path, text: str) -> Tokenizer:
    """The same of a text that was read from `path`."""
    return _tokenizer(path, *parse_json(path, text, _TOKENIZER))


def _tokenizer(path: Path, content: Any, text: str) -> Tokenizer:
    match content:
        case {"tokens": "characters" | "words" as kind, "symbols": [*symbols]}:
            _check_symbols(path, symbols, words=kind == "words")
            return Symbols(symbols, words=kind == "words")
        case {"tokens": "bytes"}:
            return Bytes()
        case {"tokens": "pretrained", "tokenizer": {"model": _} as inner}:
            from handgrad.data.subwords import PretrainedTokenizer

            return PretrainedTokenizer.parse(path, json.dumps(inner))
        case {"model": _}:
            from handgrad.data.subwords import Subwords

            return Subwords.parse(path, text)
    raise DataError(f"{path} is JSON of another kind; expected {_TOKENIZER}")


def _check_symbols(path: Path, symbols: list[Any], *, words: bool) -> None:
    """Raise DataError unless these could have been learned."""
    own = symbols[len(MARKS) :] if tuple(symbols[: len(MARKS)]) == MARKS else symbols
    for symbol in own:
        if not isinstance(symbol, str) or not symbol or (len(symbol) > 1 and not words):
            raise DataError(
                f"{path} has the symbol {str(symbol)[:40]!r}; expected "
                f"{'words' if words else 'single characters'}"
            )
        if not symbol.isascii() and any("\ud800" <= character <= "\udfff" for character in symbol):
            raise DataError(f"{path} has the symbol {symbol[:40]!r}; expected Unicode characters")
    if not own or len(set(own)) < len(own):
        raise DataError(f"{path} has a symbol twice, or none; expected each of them once")
