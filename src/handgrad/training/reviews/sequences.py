"""A model that classifies sequences: what it does along time, and where its gradient comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.ragged import Sequences
from handgrad.data.sources import as_source
from handgrad.layers import GRU, LSTM, Layer, LeakyRNN
from handgrad.losses import CrossEntropy
from handgrad.models.cls_encoder import ClsEncoder
from handgrad.models.decoding import log_softmax
from handgrad.models.sequence_classifier import SequenceClassifier
from handgrad.training.metrics import inputs_in
from handgrad.training.report.charts import Series, figure, line_chart
from handgrad.training.report.timeline import Panel, along_time, by_mean
from handgrad.training.review import Section

#: Examples that are looked at, in batches of so many, and how many of them are drawn.
_EXAMPLES, _BATCH, _DRAWN = 1024, 64, 4
#: Sizes of a panel, and the length of the axis of time.
_LEAST_SIZE, _MOST_SIZE, _LENGTH = 64, 96, 320
#: The gradient is drawn as far from the end as this share of the sequences still have a step.
_SHARE: Final = 0.1


class _Found(NamedTuple):
    """Numbers of examples, their classes' probabilities, and norms by steps before the end."""

    index: Array  # type: ignore[assignment]  # not the method of tuples
    probabilities: Array
    norms: Array


@dataclass(frozen=True)
class SequencesReview:
    """The test part x, y, seen by a SequenceClassifier or a ClsEncoder; `seed` draws the examples.

    x: `Sequences`, `Pixels` whose rows are the steps, or an array (N, T, D).
    """

    x: Any
    y: Array
    classes: Sequence[str]
    seed: int = 0

    def figures(self, model: Layer) -> dict[str, float]:
        return {}

    def sections(self, model: Layer) -> list[Section]:
        found = self._run(model)
        return [self._along_time(model, found), self._gradient(model, found)]

    def _gathered(self, model: Layer, index: Array) -> tuple[tuple[Array, ...], Array]:
        """The inputs of these examples, in the model's own type, and their classes."""
        dtype = next(iter(model.parameters.values())).dtype
        inputs, targets = as_source((self.x, self.y), "test", dtype).gather(index)
        return inputs_in(dtype, inputs), targets

    def _run(self, model: Layer) -> _Found:
        """Forward and backward of some of the examples."""
        rng = np.random.default_rng(self.seed)
        index = rng.permutation(np.flatnonzero(self._lengths()))[:_EXAMPLES]
        loss = CrossEntropy(reduction="sum")
        sums, counts = np.zeros(self.x.shape[1]), np.zeros(self.x.shape[1])
        probabilities = []
        for first in range(0, len(index), _BATCH):
            inputs, targets = self._gathered(model, index[first : first + _BATCH])
            scores, cache = model.forward(*inputs)
            probabilities.append(np.exp(log_softmax(scores.astype(np.float64))))
            dx, _ = model.backward(loss.backward(loss.forward(scores, targets)[1]), cache)
            assert dx is not None
            norms = np.linalg.norm(dx.astype(np.float64), axis=2)
            lengths = self._lengths()[index[first : first + _BATCH], None]
            left = lengths - 1 - np.arange(norms.shape[1])
            real = left >= 0
            sums += np.bincount(left[real], norms[real], len(sums))
            counts += np.bincount(left[real], minlength=len(sums))
        known = counts >= _SHARE * len(index)
        return _Found(index, np.concatenate(probabilities), sums[known] / counts[known])

    def _lengths(self) -> Array:
        """The number of steps of every example."""
        if isinstance(self.x, Sequences):
            return self.x.lengths
        return np.full(len(self.y), self.x.shape[1])

    # -- along time --------------------------------------------------------------------------------

    def _along_time(self, model: Layer, found: _Found) -> Section:
        chosen = self._chosen(found)
        steps = int(self._lengths()[found.index[chosen]].max())
        down = self._is_image
        cell = 168 / steps if down else min(16, _LENGTH / steps)
        drawings = []
        for i in chosen:
            example, _ = self._gathered(model, found.index[[i]])
            panels = [self._input(example[0][0], cell), *_panels(model, example)]
            label = f"Test example {found.index[i]} along time"
            drawing = along_time(panels, cell=cell, label=label, down=down)
            drawings.append(figure(self._said(found, i), f'<div class="scroll">{drawing}</div>'))
        beside = "Beside the image" if down else "Beneath the input (orange above 0, blue below)"
        body = f'<div class="{"flow" if down else "pair"}">{"".join(drawings)}</div>'
        return Section("Along time", f"{beside}: {_explained(model)}", body)

    def _chosen(self, found: _Found) -> list[int]:
        """Right ones of different classes as far as there are, and one that is wrong, if any."""
        targets = self.y[found.index]
        wrong = np.flatnonzero(found.probabilities.argmax(axis=1) != targets)
        right = np.flatnonzero(found.probabilities.argmax(axis=1) == targets)
        _, first = np.unique(targets[right], return_index=True)
        different = right[np.sort(first)]
        ordered = [*different, *np.setdiff1d(right, different), *wrong[1:]]
        return [int(i) for i in [*ordered[: _DRAWN - len(wrong[:1])], *wrong[:1]]]

    def _said(self, found: _Found, i: int) -> str:
        number, probabilities = found.index[i], found.probabilities[i]
        target, guess = int(self.y[number]), int(probabilities.argmax())
        sure = f"{100 * probabilities[guess]:.0f}\N{NO-BREAK SPACE}%"
        said = escape(f"{self.classes[target]}, read as {self.classes[guess]} ({sure})")
        verdict = "" if guess == target else ' <b class="wrong">wrong</b>'
        return f"{said}{verdict} <small>test example {number:,}</small>"

    @property
    def _is_image(self) -> bool:
        """Return whether the steps are the rows of an image; a single line of pixels is none."""
        _, height, width = self.x.shape
        return isinstance(self.x, Pixels) and max(height, width) <= 4 * min(height, width)

    def _input(self, x: Array, cell: float) -> Panel:
        """The channels of x (T, D), or the image that x is."""
        if self._is_image:
            return Panel("image", x.T, cell * x.shape[1])
        largest = np.abs(x).max() or 1.0
        return Panel("input", x.T / largest, _size(x.shape[1]), signed=True)

    # -- the gradient ------------------------------------------------------------------------------

    def _gradient(self, model: Layer, found: _Found) -> Section:
        before = list(range(len(found.norms)))
        low, high = _decade(found.norms)
        chart = line_chart(
            [Series("gradient", before, found.norms.tolist(), "var(--forward)")],
            label="Gradient norm along time",
            x_label="steps before the end of the sequence",
            log=True,
            y_low=low,
            y_high=high,
        )
        note = (
            "How much the loss would change with the input of a step: the norm of its gradient, "
            f"mean of {len(found.index):,} test examples, from the last step of a sequence back to "
            "its first. Where the line falls by powers of ten, the gradient vanishes and what came "
            "early is hardly learned from; where it rises, it explodes; where it stays level, "
            "every step counts."
        )
        if isinstance(model, ClsEncoder):
            note += " Attention reaches every step at once, so distance alone costs nothing here."
        elif isinstance(model, SequenceClassifier) and model.recurrent.directions == 2:
            note += (
                " The direction that runs backwards ends at the first step, "
                "so both ends are near to the result."
            )
        drawn = f'<div class="single">{figure("Norm, logarithmic", chart)}</div>' if chart else ""
        return Section("Gradient along time", note, drawn)


def _panels(model: Layer, inputs: tuple[Array, ...]) -> list[Panel]:
    """The activity of the first layer for one example, (1, T, D) and perhaps its length."""
    cache: Any = model.forward(*inputs)[1]
    if isinstance(model, ClsEncoder):
        attention = cache.s[0, :, :-1]
        return [Panel("attention", attention / (attention.max() or 1.0), _LEAST_SIZE / 3)]
    assert isinstance(model, SequenceClassifier)
    kept = cache.recurrent.layers[0][0]
    return [
        Panel(name, by_mean(values), _size(len(values)), signed=True)
        for name, values in _activations(model.recurrent, kept)
    ]


def _activations(layer: Layer, kept: Any) -> list[tuple[str, Array]]:
    """Name and values (units, T) from −1 to 1 of what the op keeps of one example.

    A gate is 1 where it is open and −1 where it is closed.
    """
    if isinstance(layer, LSTM):
        i, f, _, o = (2 * gate - 1 for gate in np.split(kept.gates[0].T, 4))
        cell = kept.c[0, 1:].T
        named = [("input gate", i), ("forget gate", f), ("output gate", o)]
        return [*named, ("cell", cell / (np.abs(cell).max() or 1.0))]
    if isinstance(layer, GRU):
        r, z, _, _ = (2 * gate - 1 for gate in np.split(kept.gates[0].T, 4))
        return [("reset gate", r), ("update gate", z), ("state", kept.h[0, 1:].T)]
    if isinstance(layer, LeakyRNN):
        return [("taken in", kept.g[0].T)]
    state = kept.h[0, 1:].T
    return [("state", state / max(1.0, np.abs(state).max()))]


def _explained(model: Layer) -> str:
    if isinstance(model, ClsEncoder):
        return (
            "how much the class token looks at each step: the strongest shade is the step it looks "
            "at most."
        )
    assert isinstance(model, SequenceClassifier)
    where = "first layer" if model.recurrent.num_layers > 1 else "layer"
    where += " that runs forward" if model.recurrent.directions == 2 else ""
    each = f"what each unit of the {where} does in the same step, the highest mean first. "
    match model.recurrent:
        case LSTM():
            return each + (
                "Gates are orange where they are open and blue where they are closed: to what "
                "comes in, to what the cell held before, and to what goes out. The cell is orange "
                "above 0 and blue below."
            )
        case GRU():
            return each + (
                "Gates are orange towards 1 and blue towards 0: of the state before, the reset "
                "gate says how much takes part in the new one, the update gate how much is kept. "
                "The state is orange above 0 and blue below."
            )
        case _:
            return each + "Orange is above 0 and blue below."


def _decade(norms: Array) -> tuple[float, float]:
    """The range of the norms that are not 0, at least a power of ten, so that level looks level."""
    known = norms[np.isfinite(norms) & (norms > 0)]
    if len(known) == 0:
        return 0.1, 1.0
    low, high = float(known.min()), float(known.max())
    room = max(1.0, math.sqrt(10 * low / high))
    return low / room, high * room


def _size(rows: int) -> float:
    """The height of a panel with so many rows."""
    return float(max(_LEAST_SIZE, min(rows, _MOST_SIZE)))
