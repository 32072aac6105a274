"""`handgrad train`: learn what a recipe says, in a folder that keeps everything about the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from handgrad.cli.described import described
from handgrad.cli.judged import figures_line, print_baseline, print_doubts
from handgrad.cli.options import Categorical, Columns, Date, Drop, Number, Quiet, Use, known_recipes
from handgrad.cli.tables import print_plan
from handgrad.errors import RecipeError
from handgrad.escaping import one_line

if TYPE_CHECKING:
    from handgrad.recipes import Recipe
    from handgrad.training import Replicas

#: Parts of a batch where a recipe names none: for up to as many ranks.
PARTS: Final = 8

EXAMPLES: Final = """
handgrad train digits
handgrad train mnist-cnn --data mnist/ --epochs 3
handgrad train my.csv --target price
handgrad train photographs/
handgrad train poems.txt
handgrad train my.toml --set optimizer.lr=0.01
handgrad train --resume runs/digits
handgrad train digits --backend jax
mpirun -n 2 handgrad train digits
"""

#: Settings of a run's training that may be others when it is resumed.
_CHANGEABLE: Final = (
    "training.epochs",
    "training.clip_norm",
    "training.backend",
    "training.devices",
)


def command(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A recipe of `handgrad recipes`, a .toml file, or your own data: a .csv table, a "
            ".txt file, or a folder with a folder of photographs for each class.",
            show_default=False,
            autocompletion=known_recipes,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The data: a file or folder. Otherwise the recipe's own, or HANDGRAD_DATA.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="The column of a table that is to be predicted. Otherwise label, class, target "
            "or y, or the last.",
            show_default=False,
        ),
    ] = None,
    use: Use = None,
    drop: Drop = None,
    categorical: Categorical = None,
    date: Date = None,
    number: Number = None,
    class_weights: Annotated[
        str | None,
        typer.Option(
            "--class-weights",
            metavar="WEIGHTS",
            help="Of classes in the loss: balanced, for rare ones to count as much as others, or "
            "NAME=2,...; 1 for those not named.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            help="Of two classes the second is answered from this probability on; otherwise from "
            "0.5.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The folder of the run. Otherwise a new one in runs/.", show_default=False
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs",
            help="Passes over the data; with --resume, more of them continue a finished run too.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Of everything random.", show_default=False),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change the recipe, such as optimizer.lr=0.01; may be repeated. With --resume: "
            "numbers of the optimizer, the schedule, training.epochs and training.clip_norm.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="Continue the run in this folder.", show_default=False),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            help="The steps are computed by numpy, which is handgrad's own engine, or by jax.",
            show_default=False,
        ),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            "--devices",
            help="With --backend jax: the devices that share each batch.",
            show_default=False,
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="The same bits on any number of ranks: training.exact, with training.parts.",
        ),
    ] = False,
    shard: Annotated[
        bool,
        typer.Option("--shard", help="Under mpirun: cut the optimizer's state over the ranks."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model; keep weights, metrics and a report in a folder.

    Under mpirun its ranks share every batch.
    """
    from handgrad.mpi.launch import launched
    from handgrad.recipes.runs import read_recipe

    with launched(shard=shard) as replicas:
        chosen = {"epochs": epochs, "backend": backend, "devices": devices}
        columns = Columns(target, use, drop, categorical, date, number)
        own = {"seed": seed, "class_weights": _weights(class_weights), "threshold": threshold}
        if resume is not None:
            _refuse_beside_resume(
                recipe=recipe, **columns._asdict(), out=out, **own, exact=exact or None
            )
            changes = [
                *(changes or ()),
                *(f"training.{key}={value}" for key, value in chosen.items() if value is not None),
            ]
            made, folder = read_recipe(resume, _changeable(changes)), resume
        elif recipe is None:
            from handgrad import recipes

            raise RecipeError(f"train: no recipe given; allowed: {', '.join(recipes.names())}")
        else:
            found = described("train", recipe, data, columns, changes or ())
            data, made = found.data, _changed(found.recipe, **own, **chosen)
            if exact or replicas.size > 1:
                made = _in_parts(made, exact)
            folder = replicas.share(out or _new_folder(found.name))
        changed = None if resume is None else ", ".join(changes or ())
        _train(replicas, made, data, folder, changed, quiet=quiet or replicas.rank > 0)


def _train(
    replicas: Replicas,
    recipe: Recipe,
    data: Path | None,
    folder: Path,
    changed: str | None,
    *,
    quiet: bool,
) -> None:
    """Train on one of the ranks; changed: the changes of a run that is resumed, else None."""
    from handgrad import recipes
    from handgrad.training.folder import Run

    built = recipes.build(recipe, recipes.load_task(recipe, data))
    if not quiet:
        typer.echo(one_line(f"{built.task.name}: {built.task.summary}; run in {folder}"))
        print_plan(built.task.data)
    summary = built.train(
        folder,
        resume=changed is not None,
        changes=changed or "",
        progress="off" if quiet else "auto",
        replicas=replicas,
    )
    if not quiet:
        typer.echo(_result(summary))
        print_baseline(summary, summary["judged_on"])
        for remark in summary["remarks"]:
            typer.echo(one_line(remark))
        typer.echo(f"report: {Run(folder).report}")
    print_doubts(summary.get("doubts", ()))


def _result(summary: dict[str, Any]) -> str:
    """The results in one line."""
    figures = figures_line(
        summary["judged_on"], summary["test_accuracy"], summary["test_loss"], summary
    )
    return (
        f"{figures}, after {summary['epochs']} epoch{'s' * (summary['epochs'] != 1)} in "
        f"{summary['seconds']:.1f} s with {summary['engine']}"
    )


def _changed(recipe: Recipe, **values: Any) -> Recipe:
    """The recipe with the command line's own settings, which its folder then keeps."""
    given = {key: value for key, value in values.items() if value is not None}
    return recipe.changed("training", **given) if given else recipe


def _weights(given: str | None) -> Any:
    """The weights of classes in `balanced` or `NAME=2,...`, as a recipe has them."""
    if given is None or given == "balanced":
        return given
    pairs = [each.rpartition("=") for each in given.split(",")]
    try:
        found = {name.strip(): float(value) for name, equals, value in pairs if name and equals}
    except ValueError:
        found = {}
    if len(found) != len(pairs):
        raise RecipeError(
            f"train: --class-weights {given}; allowed: balanced, or NAME=2,..., each class once "
            "with a number above 0"
        )
    return found


def _in_parts(recipe: Recipe, exact: bool) -> Recipe:
    """The recipe with a batch in parts, which its folder keeps for any number of ranks."""
    settings = recipe.training
    return recipe.changed(
        "training",
        parts=settings.get("parts", PARTS),
        exact=exact or settings.get("exact", False),
    )


def _new_folder(name: str) -> Path:
    """runs/<name>, or the first of runs/<name>-2, -3, … that is free."""
    folder, number = Path("runs") / name, 1
    while folder.exists():
        number += 1
        folder = Path("runs") / f"{name}-{number}"
    return folder


def _changeable(changes: Sequence[str]) -> Sequence[str]:
    """The changes, once each is one that a run allows after it was begun."""
    for change in changes:
        path = change.partition("=")[0].strip()
        section, _, name = path.partition(".")
        allowed = path in _CHANGEABLE or section == "schedule"
        if not allowed and (section != "optimizer" or name in ("", "type")):
            raise RecipeError(
                f"train: --resume with --set {change}; allowed: numbers of the optimizer, such as "
                f"optimizer.lr, the schedule, {', '.join(_CHANGEABLE)}, because the rest "
                "belongs to the run as it was begun"
            )
    return changes


def _refuse_beside_resume(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            found = value if name == "recipe" else f"--{name.replace('_', '-')}"
            raise RecipeError(
                f"train: --resume together with {found}; allowed: --resume DIR alone or with "
                "--data, --epochs, --set, --backend and --devices, because the run continues as it "
                "was begun"
            )
