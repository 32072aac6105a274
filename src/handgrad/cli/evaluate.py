"""`handgrad evaluate`: judge a trained run on the test part of its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

EXAMPLES: Final = """
handgrad evaluate runs/digits
handgrad evaluate runs/digits --data other.npz
"""


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Other data than the run's own.", show_default=False),
    ] = None,
) -> None:
    """Print loss and accuracy of a run on its test data."""
    from handgrad import recipes, training
    from handgrad.recipes.runs import load_model, read_recipe
    from handgrad.training.review import figure

    recipe = read_recipe(folder)
    model = load_model(folder, recipe)
    task = recipes.load_task(recipe, data)
    parts = isinstance(task.data, training.Parts)
    part = "validation" if parts and task.data.test is None else "test"
    judged_on = getattr(task.data, part) if parts else task.data
    judged = training.evaluate(model, recipes.build_loss(recipe), judged_on)
    extra = task.review.figures(model) if task.review is not None else {}
    more = "".join(f", {figure(name, value)}" for name, value in extra.items())
    typer.echo(
        f"{task.name}: {part} accuracy {100 * (judged.accuracy or 0.0):.2f} %, "
        f"{part} loss {judged.loss:.4f}{more}, {judged.examples:,} examples"
    )
