"""`handgrad derive`: from a forward the backward, step by step, as code and as a page."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from handgrad.cli.options import Constructor, Quiet, Settings, settings_of, targets
from handgrad.errors import ArgumentError

EXAMPLES: Final = """
handgrad derive layer_norm
handgrad derive my.py:forward --shape x=N,D --shape gamma=D
handgrad derive my.py:forward --shape x=N,D -o derivation.html
handgrad derive my.py:loss --shape z=N,C --shape q=N,C --wrt z --assume "sum(q, -1) = 1"
handgrad derive my.py:forward --shape x=N,D --to torch -o my_torch.py
handgrad derive my.py:forward --shape x=N,D --shape gamma=D --to c -o my.c
"""

_PAGES: Final = (".html", ".tex", ".md", ".pdf")
_KINDS: Final[dict[str, type]] = {"bool": bool, "int": int, "float": float}
_ASSUMPTION: Final = re.compile(r"(.+\))\s*==?\s*(-?[\d.]+)")


def command(
    target: Annotated[
        str,
        typer.Argument(
            help="A forward, as file.py:function or module:function, or an op.",
            metavar="TARGET",
            autocompletion=targets,
        ),
    ],
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="NAME=N,D",
            help="The axes of an array, in letters; NAME=bool:N,D for a mask, NAME=int:N for "
            "indices; may be repeated.",
        ),
    ] = None,
    settings: Settings = None,
    constructor: Constructor = None,
    wrt: Annotated[
        str | None,
        typer.Option("--wrt", metavar="A,B", help="The arrays that get gradients, else all."),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            "--assume",
            metavar='"sum(q, -1) = 1"',
            help="A sum over an axis that is constant; may be repeated.",
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save",
            metavar="least",
            help="Keep as little as the backward can do with, which computes the rest again.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        str,
        typer.Option("--to", metavar="numpy|torch|jax|c", help="The library of the source, or C."),
    ] = "numpy",
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="A page (.html, .tex, .md, .pdf) or source (.py, .c); otherwise the source "
            "is printed.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Derive the backward of a forward, step by step.

    Both functions are proved on examples before they are printed: the forward has the values of
    yours, the gradients agree with central differences.
    """
    import handgrad as hg
    from handgrad.program.libraries import LIBRARIES
    from handgrad.targets import resolve

    if to not in LIBRARIES:
        raise ArgumentError(f"derive: --to {to}; allowed: {', '.join(LIBRARIES)}")
    kind = ".c" if to == "c" else ".py"
    if out is not None and Path(out).suffix not in (*_PAGES, kind):
        raise ArgumentError(
            f"derive: --out {out}; allowed: a file in {', '.join(_PAGES)} or {kind}"
        )
    source = Path(target.partition(":")[0])
    if out is not None and os.path.exists(out) and os.path.exists(source) and source.samefile(out):
        raise ArgumentError(f"derive: --out {out} is the file of the forward; allowed: another")
    named: dict[str, Any] = dict(map(_shape, shapes or ()))
    named |= settings_of(settings, "derive: --option")
    found = resolve(target, settings_of(constructor, "derive: --set")).value
    derivation = hg.derive(
        found,
        assume=dict(map(_assumption, assume or ())),
        wrt=None if wrt is None else [name.strip() for name in wrt.split(",")],
        save=save,
        **named,
    )
    if out is None:
        sys.stdout.write(derivation.to(to))
        return
    if Path(out).suffix == kind:
        derivation.to(to, out)
    else:
        derivation.notes(out)
    if not quiet:
        typer.echo(out)


def _shape(text: str) -> tuple[str, tuple[Any, ...]]:
    """`x=N,D`, `mask=bool:N,S` or `tokens=int:N` as a name and a shape."""
    from handgrad.deriving.arguments import is_shape

    name, equals, value = (part.strip() for part in text.partition("="))
    kind, colon, axes = value.rpartition(":")
    parts = tuple(int(each) if each.isdecimal() else each for each in axes.split(",") if each)
    shape = (*parts, _KINDS.get(kind, float)) if colon else parts
    known = kind in _KINDS or not colon
    if not equals or not name.isidentifier() or not known or not is_shape(shape, alone=True):
        raise ArgumentError(
            f"derive: --shape {text}; allowed: NAME=N,D with letters or numbers, NAME=bool:N,D, "
            "NAME=int:N"
        )
    return name, shape


def _assumption(text: str) -> tuple[str, float]:
    match = _ASSUMPTION.fullmatch(text.strip())
    if match is None:
        raise ArgumentError(f'derive: --assume {text}; allowed: such as "sum(q, -1) = 1"')
    return match[1], float(match[2])
