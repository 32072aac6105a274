"""What a classifier gets right and wrong: its confusion matrix, and its worst mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.ragged import Sequences
from handgrad.layers.base import Layer, walk
from handgrad.layers.recurrent import Recurrent
from handgrad.models.cls_encoder import ClsEncoder
from handgrad.training.report.heatmap import shades
from handgrad.training.report.html import percent, section
from handgrad.training.report.matrix import MOST_WITH_SHARES, confusion_matrix, matrix_chart
from handgrad.training.report.pictures import image_pixels, png

#: Beyond these a drawing is no longer readable.
MOST_CLASSES, MOST_MISTAKES = 24, 24


@dataclass(frozen=True)
class Judged:
    """The examples that a model is judged on, to be shown, with their classes."""

    x: Any
    y: Array
    classes: Sequence[str] | None = None

    @classmethod
    def of(cls, test: Any) -> Judged | None:
        """The examples of a test part or a pair (x, y); None for a source of batches."""
        if hasattr(test, "x_test"):
            return cls(test.x_test, test.y_test, getattr(test, "classes", None))
        return cls(*test) if isinstance(test, tuple) else None


def judgement(model: Layer, judged: Judged, outputs: Array, part: str) -> str:
    """The sections on outputs (N, C) for the examples of this part; nothing for other outputs."""
    x, targets = judged.x, np.asarray(judged.y)
    if targets.dtype.kind not in "iu" or targets.ndim != 1 or outputs.ndim != 2:
        return ""
    names = list(judged.classes or [])
    names = names or [str(i) for i in range(outputs.shape[1])]
    probabilities = _softmax(outputs)
    predictions = probabilities.argmax(axis=1)
    sequential = _reads_sequences(model, x)
    matrix = ""
    if len(names) <= MOST_CLASSES:
        counts = confusion_matrix(targets, predictions, len(names))
        note = "Right answers in blue on the diagonal, mistakes in orange, each on its own scale."
        if len(names) <= MOST_WITH_SHARES:
            note += " The percentages are shares of the true class."
        matrix = section(
            "Confusion matrix",
            note,
            f'<div class="scroll">{matrix_chart(counts, names)}</div>',
        )
    own = probabilities[np.arange(len(targets)), targets]
    wrong = np.flatnonzero(predictions != targets)
    if len(wrong):
        heading = "Worst mistakes"
        shown = wrong[np.argsort(own[wrong], kind="stable")][:MOST_MISTAKES]
        note = (
            f"{len(wrong):,} of {len(targets):,} {part} examples are wrong; here those where the "
            f"true class was thought least likely. In bold what the model read; the numbers are "
            f"its probabilities."
        )
    else:
        heading = "Closest calls"
        shown = np.argsort(own, kind="stable")[:MOST_MISTAKES]
        note = f"No {part} example is wrong; here those where the model was least sure."
    examples = {int(i): _one(x, int(i)) for i in shown}
    if sequential:
        note += (
            " Time runs across, channels stand above one another; orange is above 0, blue below."
        )
        longest = max(map(len, examples.values()))
        pictures = {
            i: _sequence(example, f"{part} example {i}", longest) for i, example in examples.items()
        }
    else:
        pictures = {i: _image(example, f"{part} example {i}") for i, example in examples.items()}
    cards = "".join(
        f"<li>{picture}{_verdict(names, int(targets[i]), probabilities[i])}</li>"
        for i, picture in pictures.items()
    )
    kind = " sequences" if sequential else ""
    return matrix + section(heading, note, f'<ul class="examples{kind}">{cards}</ul>')


def _reads_sequences(model: Layer, x: Any) -> bool:
    """Return whether examples are (time, channels); rows of an image are shown as an image."""
    if isinstance(x, Sequences):
        return True
    recurrent = any(isinstance(layer, Recurrent | ClsEncoder) for _, layer in walk(model))
    return recurrent and not isinstance(x, Pixels) and np.ndim(x) == 3


def _one(x: Any, i: int) -> Array:
    """Example i; of sequences its own steps alone."""
    example = np.asarray(x[i : i + 1][0])
    return example[0] if isinstance(x, Sequences) else example


def _softmax(outputs: Array) -> Array:
    shifted = outputs.astype(np.float64) - outputs.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


def _image(example: Array, said: str) -> str:
    pixels = image_pixels(example)
    if pixels is None:
        return f'<span class="index">{said}</span>'
    return f'<img src="{png(pixels)}" alt="{said}" title="{said}">'


def _sequence(example: Array, said: str, longest: int) -> str:
    """Shades of (time, channels), as wide as it is long beside the longest."""
    picture = shades(example.T / (np.abs(example).max(initial=0) or 1))
    width = 100 * len(example) / longest
    return (
        f'<img class="shades" src="{picture}" alt="{said}" title="{said}" '
        f'style="width:{width:.0f}%">'
    )


def _verdict(names: Sequence[str], target: int, probabilities: Array) -> str:
    guess = int(probabilities.argmax())
    verdict = f"<b>{escape(names[guess])}</b> {percent(probabilities[guess], 0)}"
    if guess != target:
        verdict += f"<br>is {escape(names[target])} {percent(probabilities[target], 1)}"
    return f"<p>{verdict}</p>"
