"""One check that is asked for, by the options of the command or by a mark in a file."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import handgrad as hg
from handgrad.cli.inputs import arrays_for, given_arrays, settings_for
from handgrad.cli.options import settings_of
from handgrad.errors import ArgumentError
from handgrad.targets import Target, resolve

if TYPE_CHECKING:
    from handgrad.checking import CheckReport

#: Keywords of `hg.check` that are options of the command, not settings of forward.
_RESERVED: Final = ("like", "wrt", "seed")


@dataclass(frozen=True)
class Request:
    """A target and the options of its check, as on the command line."""

    target: str
    like: str | None = None
    wrt: str | None = None
    seed: int = 0
    shapes: Sequence[str] = ()
    inputs: Path | None = None
    settings: Sequence[str] = ()
    constructor: Sequence[str] = ()

    @property
    def is_bare(self) -> bool:
        """Return whether nothing but the target and the seed is given."""
        return self == Request(self.target, seed=self.seed)

    @property
    def arguments(self) -> list[str]:
        """The same as arguments of the command."""
        found = ["check", self.target, "--seed", str(self.seed)]
        one = (("--like", self.like), ("--wrt", self.wrt), ("--inputs", self.inputs))
        several = (
            ("--shape", self.shapes),
            ("--option", self.settings),
            ("--set", self.constructor),
        )
        for name, value in one:
            found += [name, str(value)] if value is not None else []
        for name, values in several:
            for value in values:
                found += [name, value]
        return found


@dataclass(frozen=True)
class Outcome:
    """A report with the target and the inputs that it is about."""

    request: Request
    report: CheckReport
    target: Target
    arrays: Sequence[Any]


def request_of(target: str, options: str) -> Request:
    """The request of a mark: `--shape x=5,3 --set n=4`.

    Raises ArgumentError for an option that `handgrad check` does not have.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    for name in ("like", "wrt"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=Path)
    for name, kept in (("shape", "shapes"), ("option", "settings"), ("set", "constructor")):
        parser.add_argument(f"--{name}", dest=kept, action="append", default=[])
    try:
        found = parser.parse_args(shlex.split(options))
    except ValueError as error:
        raise ArgumentError(
            f"check: {target} is marked with {options!r} ({error}); allowed: options of check"
        ) from None
    return Request(target, **vars(found))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def outcome_of(request: Request) -> Outcome:
    """Run one check. Raises ArgumentError where the target or its inputs are none."""
    options = settings_of(request.settings, "check: --option", _RESERVED)
    made_with = settings_of(request.constructor, "check: --set")
    with redirect_stdout(sys.stderr):  # what the user's code prints is no part of the report
        given = given_arrays(request.shapes, request.inputs, request.seed)
        target = resolve(request.target, made_with, arrays=given.arrays, seed=request.seed)
        arrays = arrays_for(target, given, like=request.like, options=options, seed=request.seed)
        wrt = request.wrt
        report = hg.check(
            target.value,
            *arrays,
            like=request.like,
            wrt=None if wrt is None else [name.strip() for name in wrt.split(",")],
            seed=request.seed,
            **settings_for(target, options),
        )
    if report.target != report.like:
        report = replace(report, target=request.target)
    return Outcome(request, report, target, arrays)
