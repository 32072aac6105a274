"""`handgrad predict`: the class, or the number, of images, arrays or rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handgrad.errors import RunError

if TYPE_CHECKING:
    from handgrad.arrays import Array
    from handgrad.inference.trained import TrainedModel

EXAMPLES: Final = """
handgrad predict runs/digits photo.png
handgrad predict runs/digits *.png --top 3
handgrad predict runs/digits scan.png --invert
handgrad predict runs/mine new.csv
"""


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    files: Annotated[
        list[Path],
        typer.Argument(help="Image files, .npy or .npz arrays, .csv tables.", metavar="FILE..."),
    ],
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many classes to print, best first.")
    ] = 1,
    invert: Annotated[
        bool,
        typer.Option("--invert", help="Swap dark and light, for dark ink when training had light."),
    ] = False,
) -> None:
    """Print the class of each example and its probability, or the number of a regression."""
    from handgrad.inference.files import load

    trained = load(folder)
    if trained.task not in ("classification", "binary", "regression"):
        instead = {"text": "handgrad generate", "pairs": "handgrad translate"}
        raise RunError(
            f"{folder} is a run on {trained.task}; expected one on classes or numbers; allowed: "
            f"{instead.get(trained.task or '', 'hg.load(folder).predict(x) in Python')}"
        )
    for file in files:
        examples = _examples(trained, file, invert=invert)
        names = [f"{file}[{i}]" if len(examples) > 1 else str(file) for i in range(len(examples))]
        for name, answer in zip(names, _answers(trained, examples, top), strict=True):
            typer.echo(f"{name}  {answer}")


def _examples(trained: TrainedModel, file: Path, *, invert: bool) -> Array:
    """The examples in a file, in the form that the model takes."""
    import numpy as np

    from handgrad.data.examples import read_examples
    from handgrad.data.table import read_rows
    from handgrad.inference.preprocessing import Scale

    shape = trained.input_shape or ()
    steps = trained.preprocessing.steps
    scale = next((step.maximum for step in steps if isinstance(step, Scale)), None)
    if file.name.endswith((".csv", ".csv.gz")):
        rows = read_rows(file, math.prod(shape), trained.columns).reshape(-1, *shape)
        return rows if scale is None else rows / np.float32(scale)
    examples = read_examples(file, shape, scale, any_length=trained.takes_any_length)
    return 1 - examples if invert else examples


def _answers(trained: TrainedModel, examples: Array, top: int) -> Iterator[str]:
    """The best classes with their probabilities, or the number, for each example."""
    if trained.task == "regression":
        yield from (f"{float(value):g}" for value in trained.predict(examples))
        return
    for row in trained.predict_proba(examples):
        best = row.argsort()[::-1][:top]
        yield "  ".join(f"{trained.name_of(c)} {100 * row[c]:.1f} %" for c in best)
