"""The page: which sections a report has, and how training went."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

from handgrad.escaping import printable
from handgrad.layers.base import Layer
from handgrad.printing import plain
from handgrad.training.folder import Run
from handgrad.training.importance import Importance
from handgrad.training.judged import ClassAnswers, Judged, NumberAnswers
from handgrad.training.progress import clock
from handgrad.training.report import network
from handgrad.training.report.charts import Series, figure, line_chart
from handgrad.training.report.html import page, percent, section
from handgrad.training.report.judgement import judgement
from handgrad.training.report.quality import importance_table, plan_table
from handgrad.training.review import FIGURES, Section, named, shown
from handgrad.writing import write_atomically

TRAIN, VALIDATION, TEST = "var(--forward)", "var(--backward)", "var(--quiet)"


@dataclass(frozen=True)
class Report:
    """What the page is made of beside the run's metrics.

    shapes: of one example, or of each array it is made of; None where that is not known. judged and
    answers: the examples that the model was judged on, if they can be shown; importances: of the
    columns of a table; own: of a review.
    """

    summary: Mapping[str, Any]
    model: Layer
    shapes: Any = None
    judged: Judged | None = None
    answers: ClassAnswers | NumberAnswers | None = None
    importances: Sequence[Importance] = ()
    own: Sequence[Section] = ()


def write_report(run: Run, report: Report) -> None:
    """Write report.html."""
    records = run.records()
    config = run.read_config()
    summary, model, judged = report.summary, report.model, report.judged
    sections = [
        _figures(summary),
        _remarks([*summary["doubts"], *summary["remarks"]]),
        _curves([record for record in records if record["kind"] == "epoch"], summary),
    ]
    if judged is not None and report.answers is not None:
        sections.append(judgement(model, judged, report.answers, summary["judged_on"]))
        sections.append(importance_table(report.importances, report.answers))
        sections.append(plan_table(judged.plan))
    sections += [section(escape(each.heading), escape(each.note), each.body) for each in report.own]
    if judged is not None:
        sections.append(network.filters(model, report.shapes))
    gradients = [record for record in records if record["kind"] == "gradients"]
    sections.append(network.norms(gradients, model))
    sections.append(network.layer_table(model, report.shapes))
    sections.append(_facts(config, summary))
    name = run.folder.resolve().name
    recipe = tomllib.loads(config)
    heading = recipe.get("description") or name
    lead = _sentence(summary, judged is not None)
    if heading != name:
        lead = f"Run {escape(name)}{_data(recipe)}. {lead}"
    text = page(name, heading[0].upper() + heading[1:], lead, sections)
    write_atomically(run.report, printable(text).encode(errors="backslashreplace"))


def _data(recipe: Mapping[str, Any]) -> str:
    """The file or folder that a recipe was given, which its description does not know."""
    path = recipe.get("data", {}).get("path")
    return f" on {escape(os.path.basename(path))}" if path else ""


def _sentence(summary: Mapping[str, Any], classifies: bool) -> str:
    epochs, steps = summary["epochs"], summary["steps"]
    text = (
        f"Trained for {epochs:,} epoch{'s' * (epochs != 1)} ({steps:,} steps) in "
        f"{_duration(summary['seconds'])}."
    )
    if classifies and summary["test_accuracy"] is not None:
        right = round(summary["test_accuracy"] * summary["test_examples"])
        text += (
            f" Of {summary['test_examples']:,} {summary['judged_on']} examples, {right:,} are "
            "classified right."
        )
    if "threshold" in summary:
        text += (
            f" The second class is answered from a probability of {summary['threshold']:g} on; the "
            "curves of each epoch are of the more probable class."
        )
    return text


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{clock(seconds)} min"


def _figures(summary: Mapping[str, Any]) -> str:
    part, extra = summary["judged_on"], summary["figures"]
    figures: list[tuple[str, Any, Callable[[Any], str]]] = [
        (f"{part} accuracy", summary["test_accuracy"], percent),
        ("baseline accuracy", summary.get("baseline_accuracy"), percent),
        (f"{part} loss", summary["test_loss"], "{:.4f}".format),
        *[(named(name), extra[name], partial(shown, name)) for name in FIGURES if name in extra],
        ("baseline error", summary.get("baseline_error"), plain),
        ("training time", summary["seconds"], _duration),
        ("parameters", summary["parameters"], "{:,}".format),
    ]
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{form(value)}</dd></div>"
        for name, value, form in figures
        if value is not None
    )
    return f'<dl class="figures">{cells}</dl>'


def _remarks(sentences: Sequence[str]) -> str:
    said = "".join(f"<p>{escape(each)}</p>" for each in sentences)
    return f'<div class="remarks">{said}</div>' if said else ""


# -- curves ---------------------------------------------------------------------------------------


def _curves(epochs: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> str:
    if not epochs:
        return ""
    # What each epoch was judged on is a curve already.
    tested = summary["judged_on"] == "test"
    losses = _lines(epochs, "loss", summary["test_loss"] if tested else None)
    values = [y for line in losses for y in line.y if y > 0]
    log = bool(values) and max(values) > 20 * min(values)
    charts = [
        figure(
            "Loss" + (", logarithmic" if log else ""),
            line_chart(losses, label="Loss by epoch", x_label="epoch", log=log),
        )
    ]
    accuracies = _lines(epochs, "accuracy", summary["test_accuracy"] if tested else None)
    if accuracies:
        # The first epochs may start anywhere; the axis is for the rest.
        values = sorted(y for line in accuracies for y in line.y)
        low = values[len(values) // 10]
        charts.append(
            figure(
                "Accuracy",
                line_chart(
                    accuracies,
                    label="Accuracy by epoch",
                    x_label="epoch",
                    y_format=lambda y: f"{100 * y:g}\N{NO-BREAK SPACE}%",
                    y_low=max(0.0, low - 0.1 * (1 - low) - 1e-3),
                    y_high=1.0,
                ),
            )
        )
    note = "Training values are averages over the epoch while the weights were still changing."
    kind = "pair" if len(charts) > 1 else "single"
    return section("How it learned", note, f'<div class="{kind}">{"".join(charts)}</div>')


def _lines(epochs: Sequence[Mapping[str, Any]], key: str, test: float | None) -> list[Series]:
    lines = []
    for name, field, style in (
        ("training", key, TRAIN),
        ("validation", f"validation_{key}", VALIDATION),
    ):
        found = [(r["epoch"], r[field]) for r in epochs if r.get(field) is not None]
        if found:
            lines.append(Series(name, [x for x, _ in found], [y for _, y in found], style))
    if test is not None and lines:
        span = [epochs[0]["epoch"], epochs[-1]["epoch"]]
        lines.append(Series("test", span, [test, test], TEST, dashed=True))
    return lines


# -- the run --------------------------------------------------------------------------------------


def _facts(config: str, summary: Mapping[str, Any]) -> str:
    shown: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("engine", summary["engine"], str),
        ("precision", summary["precision"], str),
        ("seed", summary["seed"], str),
        ("finished", summary["finished"], lambda time: f"{time[:10]} {time[11:16]} UTC"),
        ("training loss", summary["train_loss"], "{:.4f}".format),
        ("training accuracy", summary["train_accuracy"], percent),
        *[(name, text, str) for name, text in summary["versions"].items()],
    ]
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{escape(form(value))}</dd></div>"
        for name, value, form in shown
        if value is not None
    )
    return section(
        "The run",
        "",
        f'<dl class="facts">{cells}</dl>'
        f"<details><summary>config.toml</summary><pre>{escape(config)}</pre></details>",
    )
