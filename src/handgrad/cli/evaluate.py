"""`handgrad evaluate`: judge a trained run on the test part of its data, or of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from handgrad.cli.judged import figures_line, print_answers
from handgrad.errors import RunError
from handgrad.escaping import listed, one_line, quoted

if TYPE_CHECKING:
    from handgrad.data import Dataset
    from handgrad.inference.trained import TrainedModel
    from handgrad.recipes import Recipe

EXAMPLES: Final = """
handgrad evaluate runs/digits
handgrad evaluate runs/digits --data other.npz
handgrad evaluate runs/mine --data other.csv --target price
"""


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Other data than the run's own: their test part, or all.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="The column of a table with the right answers, for a run of hg.Trainer.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print how well a run does on its test data."""
    from handgrad import recipes, training
    from handgrad.data import Dataset
    from handgrad.inference.trained import TrainedModel
    from handgrad.recipes.runs import has_recipe, load_model, read_recipe
    from handgrad.training.judged import Judged
    from handgrad.training.loading import load
    from handgrad.training.review import figure

    if not has_recipe(folder):
        _of_program(load(folder), folder, data, target)
        return
    recipe = read_recipe(folder)
    model = load_model(folder, recipe)
    task = recipes.load_task(recipe, data)
    part, judged_on = _to_judge(task.data, recipe, data)
    answers = None
    if isinstance(judged_on, Dataset):
        kind = "classification" if judged_on.classes else "regression"
        trained = TrainedModel(model, kind, **task.about)
        shown = Judged.of(judged_on)
        y = shown.y if judged_on.classes else shown.y[:, None]
        pair = (shown.x, y)
        found = training.evaluate(model, recipes.build_loss(recipe), pair, keep_outputs=True)
        if found.outputs is not None:
            answers = shown.answers(trained, found.outputs)
    else:
        found = training.evaluate(model, recipes.build_loss(recipe), judged_on)
    accuracy = found.accuracy if answers is None else answers.figures.get("accuracy")
    extra = task.review.figures(model) if task.review is not None else {}
    more = "".join(f", {figure(name, value)}" for name, value in extra.items())
    first = figures_line(part, accuracy, found.loss, {})
    typer.echo(f"{one_line(task.name)}: {first}{more}, {found.examples:,} examples")
    if answers is not None:
        print_answers(answers, part)


def _to_judge(found: Any, recipe: Recipe, path: Path | None) -> tuple[str, Any]:
    """The name of the part that judges, and its examples, which the run did not learn.

    Of data that are not the run's own these are all, unless the data have a test part themselves.
    """
    from handgrad.data import Dataset
    from handgrad.data.dataset import whole

    if not isinstance(found, Dataset):
        part = "validation" if found.test is None else "test"
        return part, getattr(found, part)
    own = recipe.data.get("path")
    is_other = path is not None and (own is None or path.absolute() != Path(own).absolute())
    return "test", whole(found) if is_other and found.drawn else found


def _of_program(trained: TrainedModel, folder: Path, path: Path | None, target: str | None) -> None:
    """Print the figures of a run of a program with `hg.Trainer`, on the data in `path`."""
    from handgrad import data as data_sets
    from handgrad.data.encoding import TableEncoding
    from handgrad.inference.preprocessing import Scale

    if path is None:
        raise RunError(
            f"{folder} is a run of a program, which has its data; expected --data PATH with data "
            "to judge it on"
        )
    steps = trained.preprocessing.steps
    maximum = next((step.maximum for step in steps if isinstance(step, Scale)), None)
    numbers = trained.task == "regression"
    plan = next((step for step in steps if isinstance(step, TableEncoding)), None)
    found = data_sets.load(
        path.stem, path, maximum=maximum, target=target, numbers=numbers, kinds=plan or {}
    )
    _judge(trained, found)


def _judge(trained: TrainedModel, data: Dataset) -> None:
    """Print the figures of a model on the test part of data that have not been preprocessed."""
    from dataclasses import replace

    import numpy as np

    from handgrad.data.given import encoded
    from handgrad.inference.preprocessing import Preprocessing
    from handgrad.training.judged import ClassAnswers, NumberAnswers, usual_answer

    x = data.x_test
    if data.encoding is not None:  # its numbers have gone through that step
        others = trained.preprocessing.steps[1:]
        trained = replace(trained, preprocessing=Preprocessing(others), columns=())
    if trained.columns and data.columns and trained.columns != data.columns:
        missing = [name for name in trained.columns if name not in data.columns]
        if missing:
            raise RunError(
                f"{data.name} has no column {quoted(missing[0])}; expected "
                f"{listed(trained.columns)}"
            )
        x = np.asarray(x)[:, [data.columns.index(name) for name in trained.columns]]
    y = data.y_test if trained.classes is None else np.array(data.classes)[data.y_test]
    figures = trained.evaluate(x, y)
    count = int(figures["examples"])
    shown = ", ".join(
        f"test accuracy {100 * value:.2f} %"
        if name == "accuracy"
        else f"{name.replace('_', ' ')} {value:.4g}"
        for name, value in figures.items()
        if name in ("accuracy", "cross_entropy", "mean_squared_error")
    )
    typer.echo(f"{one_line(data.name)}: {shown}, {count:,} examples")
    usual = usual_answer(data.y_train)
    if trained.task == "regression":
        print_answers(NumberAnswers(data.y_test, np.asarray(trained.predict(x)), usual), "test")
        return
    known = trained.classes or data.classes
    probabilities = trained.predict_proba(x)
    if isinstance(probabilities, np.ndarray) and probabilities.shape == (count, len(known)):
        index = [known.index(name) if name in known else None for name in data.classes]
        usual = None if usual is None or not data.classes else index[round(usual)]
        targets = encoded(y, trained.classes or ()).astype(np.int64)
        answers = trained.decide(probabilities)
        print_answers(ClassAnswers(targets, probabilities, answers, known, usual), "test")
