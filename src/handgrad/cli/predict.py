"""`handgrad predict`: the class of image files or arrays, by a trained run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from handgrad.data.examples import read_examples
from handgrad.ops import softmax
from handgrad.recipes.runs import check_task, load_model, read_recipe
from handgrad.recipes.tasks.classification import RAGGED, standardized


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    files: Annotated[
        list[Path], typer.Argument(help="Image files, .npy or .npz arrays.", metavar="FILE...")
    ],
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many classes to print, best first.")
    ] = 1,
    invert: Annotated[
        bool,
        typer.Option("--invert", help="Swap dark and light, for dark ink when training had light."),
    ] = False,
) -> None:
    """Print the class of each example and its probability."""
    recipe = read_recipe(folder)
    check_task(folder, recipe, "classification", "allowed: handgrad generate or translate")
    model = load_model(folder, recipe)
    classes = recipe.data["classes"]
    for file in files:
        examples = read_examples(
            file,
            tuple(recipe.data["shape"]),
            recipe.data.get("maximum"),
            any_length=recipe.model.type in RAGGED,
        )
        if invert:
            examples = 1 - examples
        if "mean" in recipe.data:
            mean, std = np.array(recipe.data["mean"]), np.array(recipe.data["std"])
            examples = standardized(examples, mean, std)
        scores, _ = model.forward(examples, training=False)
        probabilities, _ = softmax.forward(scores)
        for i, row in enumerate(probabilities):
            name = str(file) if len(examples) == 1 else f"{file}[{i}]"
            best = row.argsort()[::-1][:top]
            found = "  ".join(f"{classes[c]} {100 * row[c]:.1f} %" for c in best)
            typer.echo(f"{name}  {found}")
