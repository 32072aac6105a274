"""`handgrad lr`: look for a learning rate before training."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

from handgrad.cli.described import described
from handgrad.cli.options import Categorical, Columns, Date, Drop, Number, Quiet, Use, known_recipes
from handgrad.errors import ArgumentError

EXAMPLES: Final = """
handgrad lr digits
handgrad lr flowers.csv --target kind
handgrad lr my.toml --data photos/ -o lr.svg
"""
_PICTURES: Final = (".html", ".svg")


def command(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe of `handgrad recipes`, a .toml file, or a table or folder of yours.",
            autocompletion=known_recipes,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option("--data", help="The data: a file or folder.", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="The column of a table that is to be predicted.",
            show_default=False,
        ),
    ] = None,
    use: Use = None,
    drop: Drop = None,
    categorical: Categorical = None,
    date: Date = None,
    number: Number = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="The picture to write: .html or .svg. Otherwise RECIPE-lr.html here.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=10, help="Batches to train on.")] = 200,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change the recipe; may be repeated.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Look for a learning rate, and draw the losses that suggest it.

    The rate grows from batch to batch until the loss explodes. Suggested is the one at which the
    loss falls fastest; it replaces the `lr` of the recipe's optimizer. Exit code 0; 1 where the
    loss never fell.
    """
    from handgrad import recipes
    from handgrad.training import Parts, find_lr
    from handgrad.training.run import trainer_of

    columns = Columns(target, use, drop, categorical, date, number)
    found = described("lr", recipe, data, columns, changes or ())
    file = out or Path(f"{found.name}-lr.html")
    if file.suffix not in _PICTURES:
        raise ArgumentError(f"lr: FILE is {file}; allowed: {' or '.join(_PICTURES)}")
    built = recipes.build(found.recipe, recipes.load_task(found.recipe, found.data))
    trainer = trainer_of(built.config, built.model, built.loss, built.optimizer)
    examples = built.task.data
    learned = examples.train if isinstance(examples, Parts) else examples
    losses = find_lr(trainer, learned, steps=steps)
    losses.save(file, built.task.name)
    if losses.suggestion is None:
        typer.echo(f"handgrad: lr: the loss of {built.task.name} never fell; see {file}", err=True)
        raise typer.Exit(1)
    if quiet:
        return
    rate = f"optimizer.lr={losses.suggestion:.2g}"
    place = f" --data {shlex.quote(str(data))}" if data is not None else ""
    for name, value in columns._asdict().items():
        given = [value] if isinstance(value, str) else value or ()
        place += "".join(f" --{name} {shlex.quote(each)}" for each in given)
    typer.echo(
        f"{built.task.name}: the loss falls fastest at {losses.suggestion:.2g}; "
        f"the recipe has {built.optimizer.lr:g}"
    )
    typer.echo(f"picture: {file}")
    typer.echo(f"train: handgrad train {shlex.quote(recipe)}{place} --set {rate}")
