"""`handgrad info`: which engine runs here, on which instruction set, and with how many threads."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import typer

from handgrad import kernels
from handgrad.dispatch import get_engine, get_precision, get_threads
from handgrad.training.results import versions

_LIBRARIES = ("numpy", "array-api-compat", "safetensors", "rich", "typer", "pillow")


def command() -> None:
    """Print the engine, precision, instruction set, CPU features, threads and versions in use."""
    for name, value in _facts():
        typer.echo(f"{name:<16} {value}")


def _facts() -> list[tuple[str, str]]:
    facts = [("handgrad", versions()["handgrad"]), ("engine", _engine())]
    facts.append(("precision", get_precision()))
    if kernels.native is not None:
        cpu = import_module("handgrad.kernels._cpu")
        facts += [
            ("instruction set", _instruction_set(cpu.runs()[0])),
            ("compiler", kernels.native.compiler),
            ("CPU features", ", ".join(cpu.features()) or "none the kernels use"),
            ("bf16 unit", kernels.native.bf16_unit),
            ("threads", f"{get_threads()} on {os.cpu_count()} cores"),
        ]
    facts.append(("Python", f"{platform.python_version()} on {versions()['system']}"))
    return facts + [(name, _version(name)) for name in _LIBRARIES]


def _instruction_set(best: str) -> str:
    """The one in use, those there are, and whether this machine would run a better one."""
    missing = "" if best in kernels.supported else f"; {best} needs HANDGRAD_BUILD=all at install"
    return f"{kernels.instruction_set} of {', '.join(kernels.supported)}{missing}"


def _engine() -> str:
    """The engine in use, and the reason for which there are no kernels where there are none."""
    asked = get_engine()
    if kernels.native is None:
        return f"reference, because {kernels.reason}"
    return "reference, as asked" if asked == "reference" else "kernels"


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
