"""`handgrad train`: learn what a recipe says, in a folder that keeps everything about the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from handgrad.cli.described import described
from handgrad.cli.options import Drop, Kinds, Quiet, known_recipes
from handgrad.cli.tables import print_plan
from handgrad.errors import RecipeError
from handgrad.escaping import one_line, quoted

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
            help="A recipe of `handgrad recipes`, a .toml file, or your own data: a .csv table, or "
            "a folder with a folder of photographs for each class.",
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
    drop: Drop = None,
    kinds: Kinds = None,
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
        if resume is not None:
            _refuse_beside_resume(
                recipe=recipe,
                target=target,
                drop=drop,
                kind=kinds,
                out=out,
                seed=seed,
                exact=exact or None,
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
            columns = {"target": target, "drop": drop, "kinds": kinds}
            found = described("train", recipe, data, columns, changes or ())
            data, made = found.data, _changed(found.recipe, seed=seed, **chosen)
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
        _compare(built.task.data, summary)
        typer.echo(f"report: {Run(folder).report}")


def _compare(data: Any, summary: dict[str, Any]) -> None:
    """Print what answering the same each time reaches, where the data have classes."""
    import numpy as np

    from handgrad.data.dataset import Dataset

    reached = summary["test_accuracy"]
    if not (isinstance(data, Dataset) and data.classes and data.y_test.ndim == 1) or not reached:
        return
    counts = np.bincount(data.y_train, minlength=len(data.classes))
    usual = int(counts.argmax())
    share = float((data.y_test == usual).mean())
    name = one_line(quoted(data.classes[usual]))
    typer.echo(f"baseline: {100 * share:.2f} % of the {summary['judged_on']} part are {name}")
    if reached <= share:
        typer.echo(
            f"Warning: the model is no better than answering {name} each time; where one class is "
            "frequent, the confusion matrix of the report says more than the accuracy",
            err=True,
        )


def _result(summary: dict[str, Any]) -> str:
    """The results in one line."""
    from handgrad.training.review import FIGURES, figure

    part = summary["judged_on"]
    figures = (
        []
        if summary["test_accuracy"] is None
        else [f"{part} accuracy {100 * summary['test_accuracy']:.2f} %"]
    )
    if summary["test_loss"] is not None:
        figures.append(f"{part} loss {summary['test_loss']:.4f}")
    figures += [figure(name, summary[name]) for name in FIGURES if summary.get(name) is not None]
    return (
        f"{', '.join(figures)}, after {summary['epochs']} epoch{'s' * (summary['epochs'] != 1)} in "
        f"{summary['seconds']:.1f} s with {summary['engine']}"
    )


def _changed(recipe: Recipe, **values: Any) -> Recipe:
    """The recipe with the command line's own settings, which its folder then keeps."""
    given = {key: value for key, value in values.items() if value is not None}
    return recipe.changed("training", **given) if given else recipe


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
            found = value if name == "recipe" else f"--{name}"
            raise RecipeError(
                f"train: --resume together with {found}; allowed: --resume DIR alone or with "
                "--data, --epochs, --set, --backend and --devices, because the run continues as it "
                "was begun"
            )
