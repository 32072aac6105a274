"""Any text, to learn what comes next in it.

The text is one long row of tokens: the first part of it is for training, the rest for validation.
An example is a block of consecutive tokens x, with targets y that are the same one step later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import decoded, read_text
from handgrad.data.tokens import Bytes, Symbols, TextCodec
from handgrad.errors import ArgumentError, DataError
from handgrad.paths import StrPath, as_path

if TYPE_CHECKING:
    from jaxtyping import Int

UNITS: Final = ("characters", "bytes")


@dataclass(frozen=True, repr=False)
class TokenizedText:
    """A text as tokens; `characters` are those of the validation part.

    train and validation are unsigned integers, of as few bytes as the vocabulary needs.
    A loss in nats per token is `loss / log(2) * text.tokens_per_character` bits per character.
    """

    name: str
    tokenizer: TextCodec
    train: Int[Array, "A"]
    validation: Int[Array, "B"]
    characters: int

    def __repr__(self) -> str:
        return (
            f"<Text {self.name}: {len(self.train):,} tokens for train, {len(self.validation):,} "
            f"for validation, a vocabulary of {self.tokenizer.size}>"
        )

    @property
    def tokens_per_character(self) -> float:
        """The tokens of a character in the validation part; 1 for characters."""
        return len(self.validation) / self.characters


class Blocks:
    """Blocks of `size` tokens: at random offsets for training, one after the other for judging.

    An example's number is where it starts. count: blocks in an epoch, by default as many as the
    text has; each epoch draws its own, with repetition. What is left behind the last whole block
    is not judged.
    Raises DataError where the text is too short for one block and its targets.
    """

    def __init__(self, tokens: Int[Array, "L"], size: int, count: int | None = None) -> None:
        for name, value in (("size", size), ("count", count)):
            if value is not None and value < 1:
                raise ArgumentError(f"Blocks: {name} is {value}; allowed: an integer from 1")
        if len(tokens) <= size:
            raise DataError(
                f"a text of {len(tokens):,} tokens is too short; "
                f"expected at least {size + 1:,}, a block of {size:,} and the token behind it"
            )
        self.tokens = tokens
        self.size = size
        self._starts = np.arange(0, len(tokens) - size, size)
        self._count = len(self._starts) if count is None else count

    def __len__(self) -> int:
        return self._count

    def order(self, batch_size: int, rng: np.random.Generator) -> Int[Array, "N"]:
        return rng.integers(0, len(self.tokens) - self.size, self._count)

    def every(self) -> Int[Array, "M"]:
        return self._starts

    def gather(self, index: Int[Array, "B"]) -> tuple[tuple[Array], Array]:
        """((x,), y), both (B, size) int64."""
        positions = np.asarray(index)[:, None] + np.arange(self.size)
        x, y = (self.tokens[index].astype(np.int64) for index in (positions, positions + 1))
        return (x,), y


def load(
    path: StrPath | None = None,
    *,
    unit: str = "characters",
    validation: float = 0.1,
    tokenizer: TextCodec | None = None,
) -> TokenizedText:
    """The text of a UTF-8 file, or without one the text that Python carries about itself.

    unit: "characters", of which every one in the text is a token, or "bytes" of UTF-8, unless there
    is a tokenizer. validation: the share at the end of the text that is kept from training.
    Raises DataError where the file is empty, unreadable or not UTF-8, ArgumentError for a setting
    that is not allowed.
    """
    if unit not in UNITS:
        raise ArgumentError(f"text: unit is {unit!r}; allowed: {' or '.join(UNITS)}")
    if not 0 < validation < 1:
        raise ArgumentError(f"text: validation is {validation}; allowed: between 0 and 1")
    if path is None:
        name, content = "pydoc_data.topics", python_topics().encode()
    else:
        file = as_path("text", path)
        name, content = file.stem, read_text(file)
    # In pieces, because Python keeps four bytes for every character once one of them needs it.
    characters = sum(map(len, decoded(content)))
    cut = int(characters * (1 - validation))
    if cut == 0:
        raise DataError(
            f"{path or name} has {characters} characters; expected a text to learn from"
        )
    if tokenizer is not None:
        whole = "".join(decoded(content))
        train, judged = (tokenizer.encode(part) for part in (whole[:cut], whole[cut:]))
        return TokenizedText(name, tokenizer, train, judged, characters - cut)
    if unit == "bytes":
        tokenizer, tokens = Bytes(), np.frombuffer(content, np.uint8)
        first = _byte_of(content, cut)
    else:
        tokenizer, first = Symbols.learn(decoded(content)), cut
        tokens = np.empty(characters, np.min_scalar_type(tokenizer.size - 1))
        start = 0
        for piece in decoded(content):
            tokens[start : start + len(piece)] = tokenizer.encode(piece)
            start += len(piece)
    return TokenizedText(name, tokenizer, tokens[:first], tokens[first:], characters - cut)


def _byte_of(content: bytes, character: int) -> int:
    """The offset in UTF-8 at which the character with this number begins."""
    offset = 0
    for piece in decoded(content):
        own = piece[:character]
        offset += len(own.encode())
        character -= len(own)
        if character == 0:
            break
    return offset


def python_topics() -> str:
    """The chapters of the language reference that `help()` shows, about 465,000 characters.

    They differ a little from one version of Python to the next. Raises DataError where this
    Python comes without them.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise DataError(
            "this Python comes without pydoc_data.topics; expected --data FILE, any text in UTF-8"
        ) from None
    return "\n\n".join(topics[topic] for topic in sorted(topics))
