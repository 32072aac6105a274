"""Results of a finished run: summary.json, and report.html beside it."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np

import handgrad
from handgrad.data.sources import as_source
from handgrad.io.checkpoint import finite
from handgrad.training.choices import engine_of
from handgrad.training.folder import Run
from handgrad.training.metrics import evaluate
from handgrad.training.review import Review
from handgrad.training.state import TrainState


def write_results(
    state: TrainState, run: Run, test: Any, review: Review | None = None, part: str = "test"
) -> dict[str, Any]:
    """Judge the trained model on `test`, write the report and then summary.json; returns that.

    test: as `Trainer.fit` takes it, or None; part: what it is, "test" or "validation". The summary
    comes last: where it exists, everything else does.
    """
    from handgrad.training.report import Judged, write_report

    last = state.history.epochs[-1] if state.history.epochs else {}
    shown = Judged.of(test)
    judged, shapes = None, None
    if test is not None:
        judged = evaluate(
            state.model,
            state.loss,
            test,
            state.evaluation_batch,
            keep_outputs=shown is not None,
        )
        shapes = _shapes(as_source(test, "test"))
    figures = review.figures(state.model) if review is not None else {}
    summary = {
        "judged_on": part,
        "test_loss": judged.loss if judged else None,
        "test_accuracy": judged.accuracy if judged else None,
        "test_examples": judged.examples if judged else 0,
        **figures,
        "train_loss": last.get("loss"),
        "train_accuracy": last.get("accuracy"),
        "epochs": state.epoch,
        "steps": state.step,
        "seconds": round(state.seconds, 3),
        "parameters": state.parameters.buffer.size,
        "engine": engine_of(state),
        "precision": state.precision,
        "seed": state.seed,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
    outputs = judged.outputs if judged else None
    own = review.sections(state.model) if review is not None else []
    numbers = {**finite(summary), "figures": finite(figures)}
    with run.reporting(run.report):
        write_report(run, state.model, numbers, shapes, shown, outputs, own)
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
