"""Lengths of sequences as callers give them: lists are arrays, and all else is one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import GRU, LSTM, RNN, Layer, LeakyRNN, StepPooling
from handgrad.models import Seq2Seq, SequenceClassifier, SequenceTagger, Transformer


def takers(rng: np.random.Generator) -> dict[str, tuple[Layer, tuple[Any, ...], str]]:
    """All that takes the lengths of sequences: two examples of three steps, and its argument."""
    x = rng.normal(size=(2, 3, 4)).astype(np.float32)
    tokens = rng.integers(0, 5, (2, 3))
    layers = {
        "gru": GRU(4, 5, rng=rng),
        "leaky_rnn": LeakyRNN(4, 5, alpha=0.5, rng=rng),
        "lstm": LSTM(4, 5, bidirectional=True, rng=rng),
        "rnn": RNN(4, 5, rng=rng),
        "mean": StepPooling("mean"),
        "max": StepPooling("max"),
        "classifier": SequenceClassifier(4, 5, 3, rng=rng),
        "classifier by mean": SequenceClassifier(4, 5, 3, pooling="mean", rng=rng),
        "tagger": SequenceTagger(4, 5, 3, rng=rng),
    }
    found: dict[str, tuple[Layer, tuple[Any, ...], str]] = {
        name: (layer, (x,), "lengths") for name, layer in layers.items()
    }
    pairs = {
        "seq2seq": Seq2Seq(5, 5, embedding=4, hidden=4, rng=rng),
        "transformer": Transformer(
            5, 5, d_model=4, heads=2, hidden=8, encoder_blocks=1, decoder_blocks=1, rng=rng
        ),
    }
    for name, model in pairs.items():
        for side in ("source", "target"):
            given = (tokens, None, tokens) if side == "target" else (tokens,)
            found[f"{name}, {side}"] = (model, given, f"{side}_lengths")
    return found


TAKERS = sorted(takers(np.random.default_rng(0)))
#: No lengths of two examples: floats, texts, rows, too many, too long, no arrays at all.
WRONG = (
    [1.0, 2.0], [1.5, 2], ["a", "b"], [[1], [2, 3]], [[1, 2]], [None, 1], [], [1, 2, 3], [4, 1],
    [-1, 2], [2**70, 1], [True, False], 3, "ab", {1, 2}, range(1, 3), np.array([1, 2], object),
    np.array([1.0, 2.0]), np.array([[1, 2]]), np.array(2),
)  # fmt: skip


def made(name: str, lengths: Any) -> Any:
    """y of a forward with these lengths."""
    layer, given, argument = takers(np.random.default_rng(0))[name]
    if argument == "source_lengths":
        return layer.forward(*given, source_lengths=lengths, inputs=given[0])[0]
    y = layer.forward(*given, **{argument: lengths})[0]
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_are_arrays(name: str, kind: type) -> None:
    np.testing.assert_array_equal(made(name, kind([1, 3])), made(name, np.array([1, 3])))


@pytest.mark.parametrize("name", TAKERS)
def test_what_is_no_lengths_is_one_sentence(name: str) -> None:
    for lengths in WRONG:
        with pytest.raises((ArgumentError, ShapeError), match=r"lengths .*; allowed: "):
            made(name, lengths)
