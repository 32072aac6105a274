"""Subword tokens, by the `tokenizers` package: the optional extra `handgrad[subwords]`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import parse_json, read_utf8, shortened
from handgrad.data.growth import MOST, growth
from handgrad.data.tokens import MARKS
from handgrad.errors import ArgumentError, DataError, HandgradError
from handgrad.escaping import listed
from handgrad.paths import StrPath, as_path
from handgrad.writing import write_file

if TYPE_CHECKING:
    from jaxtyping import Int


def _package() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise DataError(
            "subwords need the package tokenizers; expected `pip install 'handgrad[subwords]'`"
        ) from None
    return tokenizers


def parsed(path: Path, text: str) -> Any:
    """The tokenizer of the package in the `text` of a tokenizer.json.

    Raises DataError for text that is none, whose steps multiply texts, and without the package.
    """
    package = _package()
    grown = growth(parse_json(path, text, "a tokenizer.json")[0])
    if grown > MOST:
        raise DataError(
            f"{path} may make {grown:,} characters or tokens of one; expected at most {MOST:,}"
        )
    with failing(f"{path} is no tokenizer", "a tokenizer.json"):
        return Guarded(package.Tokenizer.from_str(text))


@contextmanager
def failing(what: str, expected: str) -> Iterator[None]:
    """Make a DataError of whatever the package raises; a panic of its Rust is no Exception."""
    try:
        yield
    except (HandgradError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        raise DataError(f"{what} ({shortened(error)}); expected {expected}") from None


class Guarded:
    """A tokenizer of the package whose methods raise no errors but handgrad's."""

    def __init__(self, tokenizer: Any) -> None:
        self._inner: Any = tokenizer._inner if isinstance(tokenizer, Guarded) else tokenizer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while a copy is made, which has no `_inner` yet
            raise AttributeError(name)
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any, **settings: Any) -> Any:
            what = f"Tokenizer: the package tokenizers fails in {name}"
            with failing(what, "texts and tokens that its tokenizer.json allows"):
                return found(*args, **settings)

        return call


class Subwords:
    """Byte pairs merged by how often they meet.

    Tokens 0 to 3 are the marks <pad>, <s>, </s> and <unk>; since every byte is a token, <unk> is
    never needed. A space belongs to the word behind it, so decoding gives the text back exactly.

    Source: Sennrich, Haddow, Birch, Neural machine translation of rare words with subword units
    (2016).
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = Guarded(tokenizer)

    @classmethod
    def learn(cls, texts: Iterable[str], size: int) -> Subwords:
        """The merges of these texts, until there are `size` tokens (fewer where they run out).

        Raises ArgumentError unless there is room for the marks and every byte.
        """
        package = _package()
        if size < len(MARKS) + 256:
            raise ArgumentError(
                f"Subwords: size is {size}; allowed: from {len(MARKS) + 256}, the marks and bytes"
            )
        tokenizer = package.Tokenizer(package.models.BPE())
        tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = package.decoders.ByteLevel()
        trainer = package.trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(MARKS),
            initial_alphabet=package.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    @classmethod
    def parse(cls, path: Path, text: str) -> Subwords:
        """The tokenizer in the `text` of a tokenizer.json. Raises DataError for other marks."""
        tokenizer = parsed(path, text)
        size = tokenizer.get_vocab_size()
        if any(tokenizer.id_to_token(number) is None for number in range(size)):
            raise DataError(f"{path} has {size} tokens with gaps; expected 0 to {size - 1}")
        found = [tokenizer.id_to_token(number) for number in range(len(MARKS))]
        if found != list(MARKS):
            raise DataError(
                f"{path} has {listed(found)} as its first tokens; expected {', '.join(MARKS)}"
            )
        return cls(tokenizer)

    @property
    def size(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> Int[Array, "T"]:
        return np.array(self._tokenizer.encode(text).ids, dtype=np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        return str(self._tokenizer.decode([int(token) for token in tokens]))

    def to_json(self) -> str:
        return str(self._tokenizer.to_str(pretty=False))

    def save(self, path: StrPath) -> None:
        write_file(as_path("save", path), self.to_json().encode())


class PretrainedTokenizer:
    """The tokenizer.json of a model in the layout of Hugging Face, for texts without an end.

    It adds no marks of beginnings and ends, and cuts nothing.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = Guarded(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    @classmethod
    def of_folder(cls, folder: StrPath) -> PretrainedTokenizer:
        """That of a folder. Raises DataError where it is missing or damaged."""
        path = as_path("model.folder", folder) / "tokenizer.json"
        return cls.parse(path, read_utf8(path, "the tokenizer of a model"))

    @classmethod
    def parse(cls, path: Path, text: str) -> PretrainedTokenizer:
        """The tokenizer in the `text` of a tokenizer.json. Raises DataError where it is none."""
        return cls(parsed(path, text))

    @property
    def size(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> Int[Array, "T"]:
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        return np.array(encoded.ids, dtype=np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        return str(self._tokenizer.decode([int(token) for token in tokens]))

    def to_json(self) -> str:
        inner = json.loads(self._tokenizer.to_str(pretty=False))
        return json.dumps({"tokens": "pretrained", "tokenizer": inner}, ensure_ascii=False)

    def save(self, path: StrPath) -> None:
        write_file(as_path("save", path), self.to_json().encode())
