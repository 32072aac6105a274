"""`handgrad check`: is every gradient right, and if not, which term is wrong?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import handgrad as hg
from handgrad.cli.options import Constructor, Quiet, Settings, ops, settings_of, targets
from handgrad.errors import ArgumentError

if TYPE_CHECKING:
    from handgrad.checking import CheckReport

EXAMPLES: Final = """
handgrad check layer_norm
handgrad check all
handgrad check my.py:forward,backward --shape x=4,3
handgrad check my.py:backward --like softmax
handgrad check net/layers.py:Dense --set n_in=3 --set n_out=4 --shape x=5,3
handgrad check digits --json
"""

#: Keywords of `hg.check` that are options of the command, not settings of forward.
_RESERVED: Final = ("target", "like", "wrt", "seed")
#: By the verdict of the report; 2 stands for misuse too.
_EXIT_CODES: Final = {"right": 0, "wrong": 1, "undecided": 2}
#: The width where the output is no terminal.
_WIDTH: Final = 100


def command(
    target: Annotated[
        str,
        typer.Argument(
            autocompletion=targets,
            help="An op, a recipe, a run's folder, module:object or file.py:object; all: every op.",
            metavar="TARGET",
        ),
    ],
    like: Annotated[
        str | None,
        typer.Option(
            "--like", metavar="OP", help="The op that it is meant to be.", autocompletion=ops
        ),
    ] = None,
    wrt: Annotated[
        str | None,
        typer.Option(
            "--wrt",
            metavar="A,B",
            help="The inputs backward returns gradients for. Otherwise all of floats.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="NAME=2,3",
            help="Shape of an input; NAME=int10:2,3 for whole numbers below 10, NAME=bool:2,3 for "
            "a mask; may be repeated.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE.npz", help="The inputs, by name or in order."),
    ] = None,
    settings: Settings = None,
    constructor: Constructor = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything found as JSON.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Check every gradient, and say which term is wrong.

    Exit code 0: all are right; 1: one is wrong; 2: it could not be judged. A file or module that is
    named is run.
    """
    from handgrad.cli.inputs import arrays_for, given_arrays
    from handgrad.targets import resolve

    options = settings_of(settings, "check: --option", _RESERVED)
    made_with = settings_of(constructor, "check: --set")
    if target == "all":
        _refuse_beside_all(
            like=like, wrt=wrt, shape=shapes, inputs=inputs, option=settings, set=constructor
        )
        raise typer.Exit(_check_all(seed, as_json=as_json, quiet=quiet))
    with redirect_stdout(sys.stderr):  # what the user's code prints is no part of the report
        given = given_arrays(shapes or (), inputs, seed)
        found = resolve(target, made_with, arrays=given.arrays, seed=seed)
        arrays = arrays_for(found, given, like=like, options=options, seed=seed)
        report = hg.check(
            found.value,
            *arrays,
            like=like,
            wrt=None if wrt is None else [name.strip() for name in wrt.split(",")],
            seed=seed,
            **options,
        )
    if report.target != report.like:
        report = replace(report, target=target)
    if as_json:
        typer.echo(report.to_json())
    elif not quiet:
        show(report)
    raise typer.Exit(_EXIT_CODES[report.verdict])


def show(report: CheckReport) -> None:
    """Print a report, as wide as the terminal."""
    from handgrad.console import Console

    Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False).print(report)


def _refuse_beside_all(**given: Sequence[str] | Path | None) -> None:
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"check: --{name} is given with all; allowed: --seed, --json")


def _check_all(seed: int, *, as_json: bool, quiet: bool) -> int:
    """Every op, a line each; the exit code."""
    reports = {}
    for name in hg.ops.OPS:
        report = reports[name] = hg.check(name, seed=seed)
        if not (as_json or quiet):
            right = len(report.trials)
            verdict = f"right in {right} situations" if report.ok else report.verdict
            typer.echo(f"{name:<22} {verdict}")
            for fault in report.faults:
                typer.echo(f"{'':<22} {fault.message}")
    if as_json:
        found = {name: report.to_dict() for name, report in reports.items()}
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    verdicts = {report.verdict for report in reports.values()}
    return next(_EXIT_CODES[each] for each in ("wrong", "undecided", "right") if each in verdicts)
