"""What a model is worth on the part that it is judged on, in lines for terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from handgrad.cli.tables import print_table
from handgrad.escaping import cut, one_line

if TYPE_CHECKING:
    from handgrad.training.judged import ClassAnswers, NumberAnswers

#: Classes that get a line each.
_MOST_ROWS: Final = 30


def figures_line(part: str, accuracy: float | None, loss: float | None, found: Any) -> str:
    """The first figures in one line: accuracy, loss, and those that are `BRIEF`."""
    from handgrad.training.review import BRIEF, figure

    figures = [] if accuracy is None else [f"{part} accuracy {100 * accuracy:.2f} %"]
    if loss is not None:
        figures.append(f"{part} loss {loss:.4f}")
    figures += [figure(name, found[name]) for name in BRIEF if found.get(name) is not None]
    return ", ".join(figures)


def print_baseline(baseline: Mapping[str, Any], part: str) -> None:
    """Print what answering the same each time reaches, where that is known."""
    from handgrad.printing import plain

    usual = one_line(str(baseline.get("baseline_answer", "")))
    if "baseline_accuracy" in baseline:
        share = 100 * baseline["baseline_accuracy"]
        typer.echo(f"baseline: {share:.2f} % of the {part} part are {usual}")
    elif "baseline_error" in baseline:
        error = plain(baseline["baseline_error"])
        typer.echo(f"baseline: root mean squared error {error} where each answer is {usual}")


def print_doubts(doubts: Sequence[str]) -> None:
    """Print what speaks against a model, as warnings."""
    for each in doubts:
        typer.echo(f"Warning: {one_line(each)}", err=True)


def print_answers(answers: ClassAnswers | NumberAnswers, part: str) -> None:
    """Print all figures of answers, those of classes one by one, and the baseline."""
    from handgrad.inference.figures import by_class
    from handgrad.training.judged import NumberAnswers
    from handgrad.training.remarks import doubts
    from handgrad.training.review import named, shown

    found = answers.figures
    if isinstance(answers, NumberAnswers):
        names = ["root_mean_squared_error", "mean_absolute_error", "r2"]
    else:
        names = ["auc", "calibration_error"]
        own = by_class(answers.targets, answers.answers, len(answers.names))
        rows = [
            [one_line(cut(name)), f"{count:,}", *(f"{value:.3f}" for value in values)]
            for name, count, *values in zip(
                answers.names, own.examples.tolist(), own.precision, own.recall, own.f1, strict=True
            )
        ]
        means = [f"{found[f'macro_{name}']:.3f}" for name in ("precision", "recall", "f1")]
        rows = rows if len(rows) <= _MOST_ROWS else []
        print_table(
            ("class", "examples", "precision", "recall", "F1"),
            [*rows, ["mean", f"{len(answers.targets):,}", *means]],
        )
    typer.echo(
        ", ".join(f"{named(name)} {shown(name, found[name])}" for name in names if name in found)
    )
    print_baseline(answers.baseline, part)
    print_doubts(doubts(answers))
