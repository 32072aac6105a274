"""Texts in, texts out: an encoder-decoder between its two tokenizers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from handgrad.data.ragged import Sequences
from handgrad.data.tokens import END, PAD, TextCodec
from handgrad.models.decoding import Translator, beam, greedy

#: Sources decoded together, those of similar length in one batch.
BATCH = 64


def translate(
    model: Translator,
    source: TextCodec,
    target: TextCodec,
    texts: Sequence[str],
    *,
    longest: int,
    width: int = 1,
    length_penalty: float = 0.0,
) -> list[str]:
    """The output of the model for each text, in at most `longest` tokens.

    width: hypotheses of a beam search; 1 takes the most probable token each time, to which
    `length_penalty` is nothing. Raises ArgumentError for numbers below 1.
    """
    found = [""] * len(texts)
    for index, x, lengths in _batches(source, texts):
        if width == 1:
            tokens = greedy(model, x, lengths, longest=longest)
        else:
            best = beam(
                model, x, lengths, width=width, longest=longest, length_penalty=length_penalty
            )
            tokens = [hypothesis.tokens for hypothesis in best]
        for i, written in zip(index.tolist(), tokens, strict=True):
            found[i] = target.decode(written)
    return found


def _batches(source: TextCodec, texts: Sequence[str]) -> Iterator[tuple[Any, Any, Any]]:
    """Indices of texts, their tokens with </s>, and their lengths, the short ones first."""
    if not texts:
        return
    encoded = Sequences.of([np.append(source.encode(text), END) for text in texts], PAD)
    order = encoded.lengths.argsort(kind="stable")
    for first in range(0, len(order), BATCH):
        index = order[first : first + BATCH]
        yield (index, *encoded[index])
