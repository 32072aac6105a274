"""`handgrad info`: which engine runs here, on which instruction set, and with how many threads."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import typer

import handgrad as hg

EXAMPLES: Final = """
handgrad info
HANDGRAD_THREADS=1 handgrad info
"""
_LIBRARIES: Final = ("numpy", "array-api-compat", "safetensors", "rich", "typer", "pillow")


def command() -> None:
    """Print engine, instruction set, threads and versions in use."""
    for name, value in _facts():
        typer.echo(f"{name:<16} {value}")


def _facts() -> list[tuple[str, str]]:
    from handgrad import kernels
    from handgrad.dispatch.cpu_caches import known_caches

    facts = [("handgrad", hg.__version__), ("engine", _engine())]
    facts.append(("precision", hg.get_precision()))
    if kernels.native is not None:
        cpu = import_module("handgrad.kernels._cpu")
        facts += [
            ("instruction set", _instruction_set(cpu.runs()[0])),
            ("compiler", kernels.native.compiler),
            ("CPU features", ", ".join(cpu.features()) or "none the kernels use"),
            ("bf16 unit", kernels.native.bf16_unit),
            ("caches", ", ".join(f"{k.upper()} {each}" for k, each in known_caches().items())),
            ("block sizes", _block_sizes()),
            ("threads", f"{hg.get_threads()} on {os.cpu_count()} cores"),
        ]
    facts.append(
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    )
    return facts + [(name, _version(name)) for name in _LIBRARIES]


def _instruction_set(best: str) -> str:
    """The one in use, those there are, and whether this machine would run a better one."""
    from handgrad import kernels

    missing = "" if best in kernels.supported else f"; {best} needs HANDGRAD_BUILD=all at install"
    return f"{kernels.instruction_set} of {', '.join(kernels.supported)}{missing}"


def _block_sizes() -> str:
    """Those of float32 products."""
    from handgrad import kernels

    assert kernels.native is not None
    names = ("MR", "NR", "KC", "MC", "NC")
    return ", ".join(
        f"{name} {size}" for name, size in zip(names, kernels.native.block_sizes(), strict=True)
    )


def _engine() -> str:
    """The engine in use, and the reason for which there are no kernels where there are none."""
    from handgrad import kernels

    asked = hg.get_engine()
    if kernels.native is None:
        return f"reference, because {kernels.reason}"
    return "reference, as asked" if asked == "reference" else "kernels"


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
