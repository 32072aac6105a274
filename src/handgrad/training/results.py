"""Results of a finished run: summary.json, and report.html beside it."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np

import handgrad
from handgrad.data.sources import Source, as_source
from handgrad.io.checkpoint import finite
from handgrad.training.choices import engine_of
from handgrad.training.folder import Run
from handgrad.training.importance import importances, too_many
from handgrad.training.judged import Judged
from handgrad.training.metrics import evaluate
from handgrad.training.remarks import doubts, kept_epoch, remarks
from handgrad.training.review import Review
from handgrad.training.state import TrainState


def write_results(
    state: TrainState,
    run: Run,
    test: Judged | Source | None,
    review: Review | None = None,
    part: str = "test",
) -> dict[str, Any]:
    """Judge the trained model on `test`, write the report and then summary.json; returns that.

    part: what `test` is, "test" or "validation". The summary comes last: where it exists,
    everything else does.
    """
    from handgrad.training.report import Report, write_report

    last = state.history.epochs[-1] if state.history.epochs else {}
    shown = test if isinstance(test, Judged) else None
    judged, shapes, answers, columns = None, None, None, []
    left_out = "" if shown is None else too_many(shown)
    if test is not None:
        source: Any = test if shown is None else (shown.x, shown.y)
        keeps = shown is not None
        judged = evaluate(
            state.model, state.loss, source, state.evaluation_batch, keep_outputs=keeps
        )
        shapes = _shapes(as_source(source, "test"))
        if shown is not None and judged.outputs is not None:
            answers = shown.answers(state.trained, judged.outputs)
            columns = importances(state.trained, shown, state.seed) if answers is not None else []
    figures = dict(answers.figures) if answers is not None else {}
    accuracy = figures.pop("accuracy", judged.accuracy if judged else None)
    if review is not None:
        figures |= review.figures(state.model)
    kept = kept_epoch(state)
    threshold = state.trained.threshold
    summary = {
        "judged_on": part,
        "test_loss": judged.loss if judged else None,
        "test_accuracy": accuracy,
        "test_examples": judged.examples if judged else 0,
        **figures,
        **(answers.baseline if answers is not None else {}),
        **({"importances": {each.column: each.fall for each in columns}} if columns else {}),
        **({} if threshold is None else {"threshold": threshold}),
        "train_loss": last.get("loss"),
        "train_accuracy": last.get("accuracy"),
        "epochs": state.epoch,
        **({} if kept is None else {"kept_epoch": kept}),
        "steps": state.step,
        "seconds": round(state.seconds, 3),
        "parameters": state.parameters.buffer.size,
        "engine": engine_of(state),
        "precision": state.precision,
        "seed": state.seed,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "doubts": doubts(answers),
        "remarks": [*remarks(state.history.epochs, kept), *filter(None, [left_out])],
    }
    report = Report(
        summary={**finite(summary), "figures": finite(figures)},
        model=state.model,
        shapes=shapes,
        judged=shown,
        answers=answers,
        importances=columns,
        own=review.sections(state.model) if review is not None else [],
    )
    with run.reporting(run.report):
        write_report(run, report)
    return run.save_summary(summary)


def _shapes(source: Any) -> Any:
    """The shape of one example, or of each array it is made of."""
    inputs, _ = source.gather(source.every()[:1])
    shapes = tuple(tuple(x.shape[1:]) for x in inputs if x.ndim > 1)
    return shapes[0] if len(shapes) == 1 else shapes


def versions() -> dict[str, str]:
    """The settings that the run's numbers may depend on."""
    return {
        "handgrad": handgrad.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
