"""The tokenizer of a folder, by the `tokenizers` package: the extra `handgrad[subwords]`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import read_utf8
from handgrad.data.subwords import Guarded, parsed
from handgrad.errors import ArgumentError
from handgrad.paths import as_path

if TYPE_CHECKING:
    import tokenizers
    from jaxtyping import Int

TOKENIZER: Final = "tokenizer.json"


class Batch(NamedTuple):
    """Texts as tokens (N, T), 0 behind their `lengths` (N,); `token_types` tell parts of a pair."""

    tokens: Array
    lengths: Array
    token_types: Array


class Tokenizer:
    """Text to tokens and back, as the tokenizer.json of a model says."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = Guarded(tokenizer)
        self._tokenizer.no_padding()
        if cut := self._tokenizer.truncation:
            # The tokens that are cut off would be kept in pieces that overlap by the stride.
            self._tokenizer.enable_truncation(**{**cut, "stride": 0})

    @classmethod
    def from_pretrained(
        cls, folder: str | os.PathLike[str], *, longest: int | None = None
    ) -> Tokenizer:
        """That of a folder. Texts are cut to `longest` tokens, or else as the file says.

        Raises DataError where it is missing or damaged, ArgumentError for longest below 1.
        """
        path = as_path("from_pretrained", folder) / TOKENIZER
        tokenizer = parsed(path, read_utf8(path, "the tokenizer of a model"))
        if longest is not None:
            if longest < 1:
                raise ArgumentError(f"Tokenizer: longest is {longest}; allowed: 1 or more")
            tokenizer.enable_truncation(longest)
        return cls(tokenizer)

    @property
    def size(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> Int[Array, "T"]:
        """The tokens of a text, with those that its model begins and ends texts with."""
        return np.array(self._tokenizer.encode(text).ids, dtype=np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens, without those."""
        return str(self._tokenizer.decode([int(token) for token in tokens]))

    def batch(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> Batch:
        """Several texts, or pairs of texts.

        Raises ArgumentError for a text alone, which is no list of texts.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ArgumentError(
                f"Tokenizer: texts is a {type(texts).__name__}; allowed: a list of str, or of pairs"
            )
        encoded = self._tokenizer.encode_batch(list(texts))
        lengths = np.array([len(each.ids) for each in encoded], dtype=np.int64)
        tokens = np.zeros((len(encoded), max(lengths, default=0)), dtype=np.int64)
        token_types = np.zeros_like(tokens)
        for row, each in enumerate(encoded):
            tokens[row, : lengths[row]] = each.ids
            token_types[row, : lengths[row]] = each.type_ids
        return Batch(tokens, lengths, token_types)
