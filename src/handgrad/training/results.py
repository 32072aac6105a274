"""What a finished run leaves: summary.json, and report.html beside it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import handgrad
from handgrad import kernels
from handgrad.arrays import Array
from handgrad.dispatch import get_engine
from handgrad.training.folder import Run
from handgrad.training.metrics import evaluate

if TYPE_CHECKING:
    from handgrad.training.trainer import Trainer


def engine_name() -> str:
    """The engine that does the work: "kernels (x86-64-v4)" or "reference"."""
    if get_engine() == "reference" or kernels.native is None:
        return "reference"
    return f"kernels ({kernels.instruction_set})"


def write_results(
    trainer: Trainer,
    run: Run,
    test: tuple[Any, Array] | None,
    classes: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Judge the trained model on `test`, write the report and then summary.json; returns that.

    The summary comes last: where it exists, everything else does.
    """
    from handgrad.training.report import write_report

    last = trainer.history.epochs[-1] if trainer.history.epochs else {}
    judged = None
    if test is not None:
        judged = evaluate(
            trainer.model, trainer.loss, test, trainer.evaluation_batch, keep_outputs=True
        )
    summary = {
        "test_loss": judged.loss if judged else None,
        "test_accuracy": judged.accuracy if judged else None,
        "test_examples": judged.examples if judged else 0,
        "train_loss": last.get("loss"),
        "train_accuracy": last.get("accuracy"),
        "epochs": trainer.epoch,
        "steps": trainer.step,
        "seconds": round(trainer.seconds, 3),
        "parameters": trainer.parameters.buffer.size,
        "engine": engine_name(),
        "precision": trainer.precision,
        "seed": trainer.seed,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
    write_report(run, trainer.model, summary, test, judged, classes)
    run.save_summary(summary)
    return summary


def versions() -> dict[str, str]:
    """What the run's numbers may depend on."""
    return {
        "handgrad": handgrad.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
