"""Sentences on a finished run that its figures alone would not say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handgrad.training.callbacks import EarlyStopping
from handgrad.training.judged import ClassAnswers, NumberAnswers

if TYPE_CHECKING:
    from handgrad.training.state import TrainState


def kept_epoch(state: TrainState) -> int | None:
    """The epoch whose weights a callback has put back; None where they are those of the last."""
    found = (each.kept_epoch for each in state.callbacks if isinstance(each, EarlyStopping))
    return next((epoch for epoch in found if epoch is not None), None)


def doubts(answers: ClassAnswers | NumberAnswers | None) -> list[str]:
    """A sentence on answers that are no better than the baseline."""
    if answers is None or answers.is_better:
        return []
    usual = answers.baseline["baseline_answer"]
    text = f"The model is no better than answering {usual} each time"
    if isinstance(answers, ClassAnswers):
        text += (
            " by its accuracy; where one class is frequent, precision and recall of each say "
            "more, and class weights or a decision threshold bring out a rare one"
        )
    return [f"{text}."]


def remarks(epochs: Sequence[Mapping[str, Any]], kept: int | None) -> list[str]:
    """A sentence on a last epoch that is not the best; kept: the one whose weights were kept."""
    losses = {
        each["epoch"]: each["validation_loss"]
        for each in epochs
        if each.get("validation_loss") is not None and math.isfinite(each["validation_loss"])
    }
    if not losses:
        return []
    last = max(losses)
    if kept is not None and kept != last and kept in losses:
        return [
            f"The weights are those of epoch {kept}, with a validation loss of "
            f"{losses[kept]:.4f}; the last, epoch {last}, has {losses[last]:.4f}."
        ]
    if kept is None:
        best = min(losses, key=lambda epoch: losses[epoch])
        if losses[best] < losses[last]:
            return [
                f"The last epoch, {last}, is worse by validation than epoch {best}: a loss of "
                f"{losses[last]:.4f} after {losses[best]:.4f}; training.keep_best = true in a "
                "recipe, or hg.training.EarlyStopping, keeps the best."
            ]
    return []
