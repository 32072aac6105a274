"""`handgrad generate`: a trained run continues a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from handgrad.errors import ArgumentError

EXAMPLES: Final = """
handgrad generate runs/text --prompt "To be"
handgrad generate runs/text --temperature 0.7 --top-k 20
"""


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    prompt: Annotated[str, typer.Option("--prompt", help="The text to continue.")] = "\n",
    length: Annotated[int, typer.Option("--length", help="Tokens to write.")] = 500,
    temperature: Annotated[
        float, typer.Option("--temperature", help="Below 1 likelier tokens, 0 the likeliest.")
    ] = 1.0,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", help="Draw from the k likeliest tokens.", show_default=False),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option("--top-p", help="Draw from the likeliest that make up p.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the drawing.")] = 0,
) -> None:
    """Print a text and what the model writes after it."""
    from handgrad.recipes.runs import check_task, read_recipe
    from handgrad.training.loading import load

    recipe = read_recipe(folder)
    check_task(folder, recipe, "text", "allowed: handgrad predict or translate")
    if not prompt:
        raise ArgumentError("generate: --prompt is empty; allowed: one character or more")
    if seed < 0:
        raise ArgumentError(f"generate: --seed is {seed}; allowed: 0 or more")
    written = load(folder).generate(
        prompt, length=length, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
    )
    typer.echo(written)
