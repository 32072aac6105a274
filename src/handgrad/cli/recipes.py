"""`handgrad recipes`: what can be trained by name."""

from __future__ import annotations

import typer

from handgrad import recipes
from handgrad.data import EXPECTED


def command() -> None:
    """List the recipes and the data each one needs."""
    for name in recipes.names():
        recipe = recipes.read(name)
        typer.echo(f"{name:<16} {recipe.description}")
        typer.echo(f"{'':<16} data: {EXPECTED[recipe.data['name']]}")
