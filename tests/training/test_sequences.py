"""Training from sources of batches: ragged sequences, blocks of a text, pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import models
from handgrad.data import Blocks, Labelled, Pairs, Sequences
from handgrad.data.tokens import PAD, Symbols
from handgrad.losses import CrossEntropy
from handgrad.optimizers import Adam
from handgrad.training import Interrupted, Parts, RunConfig, evaluate, train
from tests.training.test_resume import At, assert_same_run, press_ctrl_c

WORDS = [(a + b, b + a) for a in ("ab", "cde", "f", "ghij") for b in ("k", "lm", "nop", "q", "rs")]


def labelled(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """The class is the sign of the last value, at the end of sequences of 1 to 9 steps."""
    x = [rng.normal(size=(1 + i % 9, 2)).astype(np.float32) for i in range(40)]
    y = np.array([int(each[-1, 0] > 0) for each in x])
    source = Labelled(Sequences.of(x), y, pool=2)
    model = models.SequenceClassifier(2, 6, 2, rng=rng, num_layers=2, dropout=0.2)
    return model, CrossEntropy(), source


def blocks(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    source = Blocks(np.arange(300) ** 2 % 7, 12, 40)
    model = models.GPT(7, context=12, width=8, heads=2, blocks=1, dropout=0.1, rng=rng)
    return model, CrossEntropy(class_axis=-1), source


def pairs(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    letters = Symbols.learn((word for row in WORDS for word in row), marked=True)
    source = Pairs.of(WORDS * 2, letters, letters)
    model = models.Seq2Seq(letters.size, letters.size, embedding=5, hidden=6, dropout=0.1, rng=rng)
    return model, CrossEntropy(class_axis=-1, ignore_index=PAD), source


def parts(make: Any, **settings: Any) -> dict[str, Any]:
    model, loss, source = make(np.random.default_rng(5))
    values = {"epochs": 3, "text": "", "batch_size": 6, "seed": 2, "progress": "off", **settings}
    return {
        "config": RunConfig(**values),
        "model": model,
        "loss": loss,
        "optimizer": Adam(lr=1e-2),
        "data": Parts(source, source),
    }


@pytest.mark.parametrize("make", [labelled, blocks, pairs])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_ctrl_c_and_resume(make: Any, accumulate: int, tmp_path: Path) -> None:
    train(**parts(make, accumulate=accumulate), out=tmp_path / "whole")
    folder = tmp_path / "run"
    stop = At(5, press_ctrl_c)
    with pytest.raises(Interrupted):
        train(**parts(make, accumulate=accumulate, callbacks=[stop]), out=folder)
    again = parts(make, accumulate=accumulate, callbacks=[At(-1, None)])
    train(**again, out=folder, resume=True)
    assert_same_run(folder, tmp_path / "whole")


@pytest.mark.parametrize("make", [labelled, blocks, pairs])
def test_a_source_is_learned(make: Any, tmp_path: Path) -> None:
    pieces = parts(make, epochs=25)
    before = evaluate(pieces["model"], pieces["loss"], pieces["data"].train)
    summary = train(**pieces, out=tmp_path / "run")
    assert summary["test_loss"] < 0.9 * before.loss
    assert summary["judged_on"] == "validation"


def test_judging_does_not_depend_on_the_batches() -> None:
    """Padding differs from one cut to another; what does not count changes nothing."""
    model, loss, source = pairs(np.random.default_rng(0))
    values = [evaluate(model, loss, source, size) for size in (3, 7, 40)]
    for judged in values[1:]:
        assert judged.loss == pytest.approx(values[0].loss, rel=1e-6)
        assert judged.accuracy == values[0].accuracy
