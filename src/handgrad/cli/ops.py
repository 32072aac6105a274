"""`handgrad ops`: every operation with its formula, its layer, and whether it has a kernel."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from types import ModuleType
from typing import Annotated, Final

import typer

EXAMPLES: Final = """
handgrad ops
handgrad ops norm
"""
_FORMULA: Final = re.compile(r"Forward:\s+(.*)")


def command(
    part: Annotated[
        str, typer.Argument(help="Only ops with this in their names.", show_default=False)
    ] = "",
) -> None:
    """List every op with its formula, its layer and its kernel.

    `handgrad notes OP` has the whole derivation of one, `handgrad check OP` its proof.
    """
    from handgrad.cli.tables import print_table
    from handgrad.errors import ArgumentError
    from handgrad.ops import OPS

    chosen = [op for op in OPS if part in op]
    if not chosen:
        raise ArgumentError(f"ops: no op has {part!r} in its name; allowed: {', '.join(OPS)}")
    layers = _layers()
    print_table(
        ("op", "forward", "layer", "kernel"),
        [(op, _formula(op), ", ".join(layers.get(op, ["–"])), _kernel(op)) for op in chosen],
    )


def _formula(op: str) -> str:
    """The first line of what its docstring says of forward; … where more lines follow."""
    lines = inspect.getdoc(import_module(f"handgrad.ops.{op}").forward) or ""
    match = _FORMULA.search(lines)
    if match is None:
        return "–"
    following = lines[match.end() + 1 :].partition("\n")[0].strip()
    more = following and not following.startswith(("Backward:", "(", "Running:"))
    return match[1].rstrip(" ,;") + (", …" if more else "")


def _layers() -> dict[str, list[str]]:
    """The layers and losses of every op: those whose op it is, otherwise those that call it."""
    import handgrad.layers
    import handgrad.losses

    owners: dict[str, list[str]] = {}
    callers: dict[str, list[str]] = {}
    for package in (handgrad.layers, handgrad.losses):
        for name in package.__all__:
            each = getattr(package, name)
            if not (inspect.isclass(each) and hasattr(each, "forward")):
                continue
            op = getattr(each, "op", None)
            if isinstance(op, ModuleType):
                owners.setdefault(_stem(op), []).append(name)
                continue
            for value in vars(sys.modules[each.__module__]).values():
                if isinstance(value, ModuleType) and hasattr(value, "forward"):
                    callers.setdefault(_stem(value), []).append(name)
    return callers | owners


def _stem(op: ModuleType) -> str:
    return op.__name__.rpartition(".")[2]


def _kernel(op: str) -> str:
    from handgrad import kernels
    from handgrad.dispatch.caches import kernel_of

    if kernels.native is None:
        return "not compiled"
    return "no" if kernel_of(op) is None else "yes"
