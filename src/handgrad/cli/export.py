"""`handgrad export`: a trained run as an ONNX file, for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from handgrad.errors import ArgumentError

EXAMPLES: Final = """
handgrad export runs/digits digits.onnx
handgrad export runs/dates dates.onnx --lengths
"""


def command(
    folder: Annotated[
        Path, typer.Argument(help="The folder of a run, or a .safetensors file.", metavar="RUN")
    ],
    path: Annotated[Path, typer.Argument(help="The file to write.", metavar="FILE.onnx")],
    lengths: Annotated[
        bool,
        typer.Option("--lengths", help="Take the lengths of sequences as inputs of their own."),
    ] = False,
) -> None:
    """Write a trained model as ONNX."""
    import handgrad as hg

    if path.suffix != ".onnx" and (path.is_file() or not path.exists()):
        raise ArgumentError(f"export: {path} is no name of an ONNX file; allowed: FILE.onnx")
    trained = hg.load(folder)
    hg.export_onnx(trained, path, lengths=lengths)
    size = path.stat().st_size
    typer.echo(f"{path}: a {type(trained.model).__name__} in {size:,} bytes")
