"""`handgrad predict`: the class of image files or arrays, by a trained run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from handgrad.errors import RunError

EXAMPLES: Final = """
handgrad predict runs/digits photo.png
handgrad predict runs/digits *.png --top 3
handgrad predict runs/digits scan.png --invert
"""


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
    from handgrad.data.examples import read_examples
    from handgrad.inference.files import load
    from handgrad.inference.preprocessing import Scale

    trained = load(folder)
    known = trained.input_shape
    if trained.task not in ("classification", "binary") or known is None:
        instead = {"text": "handgrad generate", "pairs": "handgrad translate"}
        raise RunError(
            f"{folder} is a run on {trained.task}; expected one on classes; allowed: "
            f"{instead.get(trained.task or '', 'hg.load(folder).predict(x) in Python')}"
        )
    steps = trained.preprocessing.steps
    scale = next((step.maximum for step in steps if isinstance(step, Scale)), None)
    for file in files:
        examples = read_examples(file, known, scale, any_length=trained.takes_any_length)
        if invert:
            examples = 1 - examples
        probabilities = trained.predict_proba(examples)
        for i, row in enumerate(probabilities):
            name = str(file) if len(examples) == 1 else f"{file}[{i}]"
            best = row.argsort()[::-1][:top]
            found = "  ".join(f"{trained.name_of(c)} {100 * row[c]:.1f} %" for c in best)
            typer.echo(f"{name}  {found}")
