"""Tokenizers in files: every kind that `save` writes, and a tokenizer.json of Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from handgrad.data.files import parse_json, read_json
from handgrad.data.tokens import MARKS, Bytes, Symbols, TextCodec
from handgrad.errors import DataError
from handgrad.escaping import quoted
from handgrad.paths import StrPath, as_path

_TOKENIZER: Final = "a tokenizer saved by handgrad or by the tokenizers package"


def load_tokenizer(path: StrPath) -> TextCodec:
    """The tokenizer that was saved in `path`. Raises DataError where it holds something else."""
    file = as_path("load_tokenizer", path)
    return _tokenizer(file, *read_json(file, _TOKENIZER))


def parse_tokenizer(path: Path, text: str) -> TextCodec:
    """The same of a text that was read from `path`."""
    return _tokenizer(path, *parse_json(path, text, _TOKENIZER))


def _tokenizer(path: Path, content: Any, text: str) -> TextCodec:
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
                f"{path} has the symbol {quoted(symbol)}; expected "
                f"{'words' if words else 'single characters'}"
            )
        if not symbol.isascii() and any("\ud800" <= character <= "\udfff" for character in symbol):
            raise DataError(f"{path} has the symbol {quoted(symbol)}; expected Unicode characters")
    if not own or len(set(own)) < len(own):
        raise DataError(f"{path} has a symbol twice, or none; expected each of them once")
