"""The inputs that --shape draws for a loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Run = Callable[..., Result]

LOSS = """\
import numpy as np


class Entropy:
    def forward(self, y_pred, y_true):
        self.p, self.t = np.clip(y_pred, 1e-7, 1 - 1e-7), y_true
        return -np.sum(y_true * np.log(self.p)) / len(y_true)

    def backward(self):
        return -self.t / self.p / len(self.t)


class OfScores:
    def forward(self, scores, label):
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        self.p, self.t = e / e.sum(axis=1, keepdims=True), label
        return -np.sum(label * np.log(self.p)) / len(label)

    def backward(self):
        return (self.p - self.t) / len(self.t)
"""


def test_labels_are_one_hot_and_predictions_between_0_and_1(handgrad: Run, tmp_path: Path) -> None:
    file = tmp_path / "losses.py"
    file.write_text(LOSS, encoding="utf-8")
    for name, inputs in (("Entropy", ("y_pred", "y_true")), ("OfScores", ("scores", "label"))):
        shapes = [word for each in inputs for word in ("--shape", f"{each}=5,3")]
        result = handgrad("check", f"{file}:{name}", *shapes)
        assert result.exit_code == 0, result.output
