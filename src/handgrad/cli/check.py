"""`handgrad check`: is every gradient right, and if not, which term is wrong?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import handgrad as hg
from handgrad.cli.options import Constructor, Quiet, Settings, ops, targets
from handgrad.errors import ArgumentError, HandgradError
from handgrad.escaping import printable

if TYPE_CHECKING:
    from handgrad.checking import CheckReport
    from handgrad.cli.requests import Outcome, Request

EXAMPLES: Final = """
handgrad check layer_norm
handgrad check all
handgrad check my.py:forward,backward --shape x=4,3
handgrad check my.py:backward --like softmax
handgrad check net/layers.py:Dense --set n_in=3 --set n_out=4 --shape x=5,3
handgrad check digits --json
handgrad check --changed --since origin/main
"""

#: By the verdict of the report; 2 stands for misuse too.
_EXIT_CODES: Final = {"right": 0, "wrong": 1, "undecided": 2}
#: The width where the output is no terminal.
_WIDTH: Final = 100


def command(
    target: Annotated[
        str | None,
        typer.Argument(
            autocompletion=targets,
            help="An op, a recipe, a run's folder, module:object or file.py:object; all: every op.",
            metavar="TARGET",
            show_default=False,
        ),
    ] = None,
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
    changed: Annotated[
        bool,
        typer.Option("--changed", help="What is marked in the Python files that Git says changed."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="COMMIT", help="With --changed: since it branched off."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything found as JSON.")
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE.xml", help="Write a file in JUnit's form too."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="FILE.html", help="Write a page with pictures of the gradients."
        ),
    ] = None,
    watched: Annotated[
        bool, typer.Option("--watch", help="Check again whenever a Python file is saved.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Check every gradient, and say which term is wrong.

    Exit code 0: all are right; 1: one is wrong; 2: it could not be judged. A file or module that is
    named is run. On GitHub, faults are annotations of the lines that are wrong.
    """
    from handgrad.cli.requests import Request

    if target == "all":
        _refuse_beside(
            "all",
            "--seed, --json",
            like=like,
            wrt=wrt,
            shape=shapes,
            inputs=inputs,
            option=settings,
            set=constructor,
            junit=junit,
            out=out,
            since=since,
        )
        raise typer.Exit(_check_all(seed, as_json=as_json, quiet=quiet))
    request = Request(
        target or "", like, wrt, seed, shapes or (), inputs, settings or (), constructor or ()
    )
    files = _files(request, changed=changed, since=since)
    if files is not None:
        what = "--changed" if changed else str(target)
        allowed = "--seed, --json, --junit"
        _refuse_beside(what, allowed, out=out, watch=watched or None)
        code = _check_marked(files, seed, junit=junit, as_json=as_json, quiet=quiet)
        raise typer.Exit(code)
    if watched:
        from handgrad.cli.watching import watch

        home = Path(request.target.partition(":")[0])
        files_too = (("--junit", junit), ("--out", out))
        more = [each for name, file in files_too if file for each in (name, str(file))]
        watch(home.parent if home.suffix == ".py" else Path(), [*request.arguments, *more])
    outcome = _outcome(request)
    report = outcome.report
    if junit is not None:
        _write_junit(junit, [(request.target, report)])
    if out is not None:
        _write_page(out, outcome)
    if as_json:
        typer.echo(report.to_json())
    elif not quiet:
        show(report)
        _annotate(request.target, report)
    raise typer.Exit(_EXIT_CODES[report.verdict])


def _outcome(request: Request) -> Outcome:
    from handgrad.cli.requests import outcome_of

    return outcome_of(request)


def _files(request: Request, *, changed: bool, since: str | None) -> list[Path] | None:
    """The files whose marks are meant; None where the target itself is.

    They are those that changed, or a file alone whose functions are marked.
    """
    from handgrad.cli.marked import changed_files, found_in

    if since is not None and not changed:
        raise ArgumentError("check: --since is given without --changed; allowed: both")
    if changed and (request.target or not request.is_bare):
        raise ArgumentError("check: --changed is given with a target; allowed: --seed, --junit")
    if changed:
        return changed_files(since)
    if not request.target:
        raise ArgumentError("check: no target is given; allowed: one, or --changed")
    file = Path(request.target)
    is_file = file.suffix == ".py" and request.is_bare and file.is_file()
    marked = is_file and any(each.options is not None for each in found_in(file))
    return [file] if marked else None


def _check_marked(
    files: Sequence[Path], seed: int, *, junit: Path | None, as_json: bool, quiet: bool
) -> int:
    """Everything that is marked in files, one after the other; the exit code."""
    from handgrad.cli.marked import found_in, unmarked

    found = [each for file in files for each in found_in(file)]
    results: list[tuple[str, CheckReport | str]] = []
    verdicts = set()
    for each in found:
        if each.options is None:
            continue
        try:
            report = _outcome(replace(each.request, seed=seed or each.request.seed)).report
        except HandgradError as error:
            results.append((each.target, str(error)))
            verdicts.add("undecided")
            typer.echo(f"handgrad: {printable(str(error))}", err=True)
            continue
        results.append((each.target, report))
        verdicts.add(report.verdict)
        if quiet or as_json:
            continue
        if report.ok and not report.unjudged:
            typer.echo(f"✓ {each.target}: every gradient is right")
        else:
            show(report)
        _annotate(each.target, report)
    if as_json:
        told = {
            name: {"error": each} if isinstance(each, str) else each.to_dict()
            for name, each in results
        }
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
    elif not quiet:
        for sentence in unmarked(found):
            typer.echo(f"i {sentence}")
        if not found:
            typer.echo(f"i nothing is marked in {len(files)} files")
    if junit is not None:
        _write_junit(junit, results)
    return next((_EXIT_CODES[e] for e in ("wrong", "undecided") if e in verdicts), 0)


def _annotate(target: str, report: CheckReport) -> None:
    """On GitHub, the faults as commands that annotate the lines."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from handgrad.cli.results import github_commands

        for line in github_commands(target, report):
            typer.echo(line)


def _write_junit(file: Path, results: Sequence[tuple[str, CheckReport | str]]) -> None:
    from handgrad.cli.results import junit

    _write(file, junit(results))


def _write_page(file: Path, outcome: Outcome) -> None:
    from handgrad.cli.check_page import page

    if file.suffix not in (".html", ".htm"):
        raise ArgumentError(f"check: --out {file}; allowed: a file in .html")
    _write(file, page(outcome).encode())


def _write(file: Path, content: bytes) -> None:
    from handgrad.writing import reason, write_file

    try:
        write_file(file, content)
    except OSError as error:
        raise ArgumentError(
            f"check: {file} cannot be written ({reason(error)}); allowed: a file in a folder that "
            "exists and can be written to"
        ) from None


def show(report: CheckReport) -> None:
    """Print a report, as wide as the terminal."""
    from handgrad.console import Console

    Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False).print(report)


def _refuse_beside(what: str, allowed: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"check: --{name} is given with {what}; allowed: {allowed}")


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
