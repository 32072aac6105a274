"""How good answers are, class by class, what they go by, and how far to believe in them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from handgrad.data.encoding import TableEncoding
from handgrad.inference.figures import by_class, calibration
from handgrad.training.importance import REPEATS, Importance
from handgrad.training.judged import ClassAnswers, NumberAnswers
from handgrad.training.report.charts import Series, figure, line_chart
from handgrad.training.report.html import percent, section, table

#: Rows of a table that is read and not searched.
_MOST_ROWS = 100
_MOST_COLUMNS = 30
#: A curve through fewer examples would be noise.
_LEAST_EXAMPLES = 20


def class_table(answers: ClassAnswers) -> str:
    """Precision, recall and F1 of each class, and their means."""
    own = by_class(answers.targets, answers.answers, len(answers.names))
    if len(answers.names) > _MOST_ROWS:
        return ""
    rows = [
        [name, f"{count:,}", *(f"{value:.3f}" for value in values)]
        for name, count, *values in zip(
            answers.names, own.examples.tolist(), own.precision, own.recall, own.f1, strict=True
        )
    ]
    means = [f"{own.mean(name):.3f}" for name in ("precision", "recall", "f1")]
    note = (
        "Precision is the share of a class's answers that are right, recall the share of its "
        "examples that are found, F1 their harmonic mean. Below, each class counts alike."
    )
    return section(
        "Class by class",
        note,
        table(
            ("class", "examples", "precision", "recall", "F1"),
            rows,
            foot=("mean", f"{len(answers.targets):,}", *means),
        ),
    )


def importance_table(
    found: Sequence[Importance], answers: ClassAnswers | NumberAnswers | None
) -> str:
    """The columns of a table by what shuffling them costs."""
    if not found:
        return ""
    is_number = isinstance(answers, NumberAnswers)
    score = "R² falls" if is_number else "the mean cross-entropy rises"
    largest = max(found[0].fall, 1e-12)
    rows = "".join(
        f"<tr><td>{escape(each.column)}</td>"
        f'<td><div class="bar" style="width:{100 * max(each.fall, 0.0) / largest:.1f}%"></div></td>'
        f"<td>{each.fall:.4f}</td><td>± {each.deviation:.4f}</td></tr>"
        for each in found[:_MOST_COLUMNS]
    )
    more = len(found) - _MOST_COLUMNS
    note = (
        f"By how much {score} when the values of a column are shuffled among the examples, the "
        f"mean over {REPEATS} shuffles and its deviation. Of columns that say nearly the same, "
        "each may stand in for the other."
    )
    note += f" The {more:,} columns behind these are left out." if more > 0 else ""
    return section(
        "What it goes by",
        note,
        f'<div class="scroll"><table class="importances"><tbody>{rows}</tbody></table></div>',
    )


def plan_table(plan: TableEncoding | None) -> str:
    """The columns of a table, as they were read."""
    if plan is None:
        return ""
    rows = [
        [each.name, each.kind, f"{each.missing or ''}", each.shown]
        for each in plan.columns[:_MOST_ROWS]
    ]
    note = "The plan is made from the rows that were learned from, and is kept with the model."
    more = len(plan.columns) - _MOST_ROWS
    note += f" The {more:,} columns behind these are left out here." if more > 0 else ""
    heads = ("column", "kind", "missing", "how used")
    return section("How the table was read", note, table(heads, rows, kind="texts"))


def calibration_chart(answers: ClassAnswers) -> str:
    """The share of right answers over their probability, beside the line where both agree."""
    count = len(answers.answers)
    if count < _LEAST_EXAMPLES:
        return ""
    confidence = answers.probabilities[np.arange(count), answers.answers]
    found = calibration(answers.answers == answers.targets, confidence)
    across = (100 * found.probability).tolist()
    low = min(across[0], 100 / answers.probabilities.shape[1])
    lines = [
        Series("as sure as right", [low, 100.0], [low, 100.0], "var(--quiet)", dashed=True),
        Series("model", across, (100 * found.right).tolist(), "var(--forward)"),
    ]
    chart = line_chart(
        lines,
        label="Share of right answers by their probability",
        x_label="probability of the answer, percent",
        y_format=lambda y: f"{y:g}\N{NO-BREAK SPACE}%",
        y_low=0.0,
        y_high=100.0,
    )
    note = (
        "Answers in ten bins by their probability: each point has the mean probability across, the "
        "share that is right upward. Below the line the model is surer than it should be. The mean "
        f"distance to the line over all answers, the expected calibration error, is "
        f"{percent(found.error, 1)}."
    )
    body = f'<div class="single">{figure("Right answers by probability", chart)}</div>'
    return section("How sure it may be", note, body)
