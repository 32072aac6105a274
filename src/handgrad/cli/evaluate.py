"""`handgrad evaluate`: judge a trained run on the test part of its data, or of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

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
    from handgrad.recipes.runs import has_recipe, load_model, read_recipe
    from handgrad.recipes.tasks.classification import load_data
    from handgrad.training.loading import load
    from handgrad.training.review import figure

    if not has_recipe(folder):
        typer.echo(_of_program(folder, data, target))
        return
    recipe = read_recipe(folder)
    if recipe.data.get("classes") == []:
        typer.echo(_judged(load(folder), _to_judge(load_data(recipe, data), recipe, data)))
        return
    model = load_model(folder, recipe)
    task = recipes.load_task(recipe, data)
    parts = isinstance(task.data, training.Parts)
    part = "validation" if parts and task.data.test is None else "test"
    judged_on = getattr(task.data, part) if parts else _to_judge(task.data, recipe, data)
    judged = training.evaluate(model, recipes.build_loss(recipe), judged_on)
    extra = task.review.figures(model) if task.review is not None else {}
    more = "".join(f", {figure(name, value)}" for name, value in extra.items())
    typer.echo(
        f"{one_line(task.name)}: {part} accuracy {100 * (judged.accuracy or 0.0):.2f} %, "
        f"{part} loss {judged.loss:.4f}{more}, {judged.examples:,} examples"
    )


def _to_judge(found: Any, recipe: Recipe, path: Path | None) -> Any:
    """The data with the examples in their test part that the run did not learn.

    Of data that are not the run's own these are all, unless the data have a test part themselves.
    """
    from handgrad.data import Dataset
    from handgrad.data.dataset import whole

    own = recipe.data.get("path")
    is_other = path is not None and (own is None or path.absolute() != Path(own).absolute())
    return whole(found) if is_other and isinstance(found, Dataset) and found.drawn else found


def _of_program(folder: Path, path: Path | None, target: str | None) -> str:
    """The figures of a run that a program started with `hg.Trainer`, on the data in `path`."""
    from handgrad import data as data_sets
    from handgrad.data.encoding import TableEncoding
    from handgrad.inference.preprocessing import Scale
    from handgrad.training.loading import load

    trained = load(folder)
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
    return _judged(trained, found)


def _judged(trained: TrainedModel, data: Dataset) -> str:
    """The figures of a model on the test part of data that have not been preprocessed."""
    from dataclasses import replace

    import numpy as np

    from handgrad.inference.preprocessing import Preprocessing

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
    count = int(figures.pop("examples"))
    shown = ", ".join(
        f"test accuracy {100 * value:.2f} %"
        if name == "accuracy"
        else f"{name.replace('_', ' ')} {value:.4g}"
        for name, value in figures.items()
    )
    return f"{one_line(data.name)}: {shown}, {count:,} examples"
