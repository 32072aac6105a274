"""`handgrad evaluate`: judge a trained run on the test part of its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handgrad import recipes, training
from handgrad.recipes.runs import load_model, read_recipe


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Other data than the run's own.", show_default=False),
    ] = None,
) -> None:
    """Print loss and accuracy of a run on its test data."""
    recipe = read_recipe(folder)
    model = load_model(folder, recipe)
    dataset = recipes.load_data(recipe, data)
    judged = training.evaluate(model, recipes.build_loss(recipe), dataset)
    typer.echo(
        f"{dataset.name}: test accuracy {100 * (judged.accuracy or 0.0):.2f} %, "
        f"test loss {judged.loss:.4f}, {judged.examples:,} examples"
    )
