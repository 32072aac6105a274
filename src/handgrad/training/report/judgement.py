"""What a model gets right and wrong: classes with their worst mistakes, and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.ragged import Sequences
from handgrad.layers.base import Layer, walk
from handgrad.layers.recurrent import Recurrent
from handgrad.models.cls_encoder import ClsEncoder
from handgrad.printing import plain
from handgrad.training.judged import ClassAnswers, Judged, NumberAnswers
from handgrad.training.report.charts import figure
from handgrad.training.report.heatmap import shades
from handgrad.training.report.html import percent, section, table
from handgrad.training.report.matrix import MOST_WITH_SHARES, confusion_matrix, matrix_chart
from handgrad.training.report.pictures import image_pixels, png
from handgrad.training.report.quality import calibration_chart, class_table
from handgrad.training.report.scatter import scatter

#: Beyond these a drawing is no longer readable.
MOST_CLASSES, MOST_MISTAKES = 24, 24
#: Rows of a table of numbers.
_ROWS = 12


def judgement(
    model: Layer, judged: Judged, answers: ClassAnswers | NumberAnswers, part: str
) -> str:
    """The sections on the answers for the examples of this part."""
    if isinstance(answers, NumberAnswers):
        return _numbers(judged, answers, part)
    matrix = ""
    if len(answers.names) <= MOST_CLASSES:
        counts = confusion_matrix(answers.targets, answers.answers, len(answers.names))
        note = "Right answers in blue on the diagonal, mistakes in red, each on its own scale."
        if len(answers.names) <= MOST_WITH_SHARES:
            note += " The percentages are shares of the true class."
        matrix = section(
            "Confusion matrix",
            note,
            f'<div class="scroll">{matrix_chart(counts, answers.names)}</div>',
        )
    return (
        matrix
        + class_table(answers)
        + calibration_chart(answers)
        + _mistakes(model, judged, answers, part)
    )


def _mistakes(model: Layer, judged: Judged, answers: ClassAnswers, part: str) -> str:
    targets, probabilities = answers.targets, answers.probabilities
    wrong = answers.mistakes
    if len(wrong):
        heading = "Worst mistakes"
        shown = wrong[:MOST_MISTAKES]
        note = (
            f"{len(wrong):,} of {len(targets):,} {part} examples are wrong; here those where the "
            f"true class was thought least likely. In bold what the model read; the numbers are "
            f"its probabilities."
        )
    else:
        heading = "Closest calls"
        own = probabilities[np.arange(len(targets)), targets]
        shown = np.argsort(own, kind="stable")[:MOST_MISTAKES]
        note = f"No {part} example is wrong; here those where the model was least sure."
    x = judged.x
    examples = {int(i): _one(x, int(i)) for i in shown}
    sequential = _reads_sequences(model, x)
    if sequential:
        note += (
            " Time runs across, channels stand above one another; orange is above 0, blue below."
        )
    longest = max(map(len, examples.values())) if sequential else 0
    cards = ""
    for i, example in examples.items():
        said = escape(judged.name(i, part))
        picture = _sequence(example, said, longest) if sequential else _image(example, said)
        known = f'<span class="index">{said}</span>'
        named = known if judged.origins is not None and picture != known else ""
        verdict = _verdict(answers, i)
        cards += f"<li>{picture}{named}{verdict}</li>"
    kind = " sequences" if sequential else ""
    return section(heading, note, f'<ul class="examples{kind}">{cards}</ul>')


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


def _verdict(answers: ClassAnswers, i: int) -> str:
    names, probabilities = answers.names, answers.probabilities[i]
    guess, target = int(answers.answers[i]), int(answers.targets[i])
    verdict = f"<b>{escape(names[guess])}</b> {percent(probabilities[guess], 0)}"
    if guess != target:
        verdict += f"<br>is {escape(names[target])} {percent(probabilities[target], 1)}"
    return f"<p>{verdict}</p>"


# -- numbers ---------------------------------------------------------------------------------------


def _numbers(judged: Judged, answers: NumberAnswers, part: str) -> str:
    """Predicted numbers over the right ones, and those that are furthest from them."""
    if answers.targets.size != len(answers.targets):
        return ""
    right, predicted = answers.targets.ravel(), answers.predicted.ravel()
    drawing = scatter(right, predicted)
    note = (
        f"Each point is an example of the {part} part: its right number across, the predicted one "
        "upward. On the line both are the same."
    )
    near = section(
        "How near it comes",
        note,
        drawing and f'<div class="single">{figure("Predicted over right", drawing)}</div>',
    )
    rows: list[Sequence[str]] = [
        [
            judged.name(int(i), part),
            plain(float(right[i])),
            plain(float(predicted[i])),
            plain(float(predicted[i] - right[i])),
        ]
        for i in answers.mistakes[:_ROWS]
    ]
    return near + section(
        "Worst mistakes",
        f"The {part} examples whose prediction is furthest from the right number.",
        table(("example", "right", "predicted", "error"), rows),
    )
