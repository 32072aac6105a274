"""`handgrad predict`: the class, or the number, of pictures, arrays or rows of a table."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from handgrad.errors import ArgumentError, DataError, RunError
from handgrad.escaping import one_line
from handgrad.streams import print_csv
from handgrad.writing import reason, write_file

if TYPE_CHECKING:
    from handgrad.arrays import Array
    from handgrad.inference.pictures import Reading
    from handgrad.inference.trained import TrainedModel

EXAMPLES: Final = """
handgrad predict runs/digits photo.png --show seen/
handgrad predict runs/digits photos/ --top 3
handgrad predict runs/mine new.csv --csv > answers.csv
generate-rows | handgrad predict runs/mine - --json
"""


@dataclass(frozen=True)
class _Answer:
    """An example and what the model says of it: classes, the best first, or a number."""

    example: str
    classes: tuple[tuple[str, float], ...] = ()
    number: float | None = None
    done: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def line(self) -> str:
        from handgrad.printing import plain

        if self.number is not None:
            return one_line(f"{self.example}  {plain(self.number)}")
        found = "  ".join(f"{name} {100 * share:.1f} %" for name, share in self.classes)
        return one_line(f"{self.example}  {found}")

    def record(self) -> dict[str, Any]:
        if self.number is not None:
            return {"example": self.example, "value": self.number}
        classes = [{"class": name, "probability": share} for name, share in self.classes]
        picture = {"done": list(self.done), "doubts": list(self.doubts)} if self.done else {}
        return {"example": self.example, "classes": classes, **picture}

    def row(self) -> list[Any]:
        answers = [cell for pair in self.classes for cell in pair]
        return [self.example, *(answers if self.number is None else [self.number])]


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Images, folders of them, .npy or .npz arrays, .csv tables; - reads CSV.",
            metavar="FILE...",
        ),
    ],
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many classes to print, best first.")
    ] = 1,
    show: Annotated[
        Path | None,
        typer.Option(help="Write each picture as the model sees it, into this folder."),
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the class of each example, or the number of a regression.

    With a class stands its probability.

    A picture is brought into the form of those in training: what was done to it goes to standard
    error with --show, and a warning where it looks like none of them.
    """
    from handgrad.training.loading import load

    if as_csv and as_json:
        raise ArgumentError("predict: --csv together with --json; allowed: one of them")
    _check_order(folder, files)
    trained = load(folder)
    if trained.task not in ("classification", "binary", "regression"):
        instead = {"text": "handgrad generate", "pairs": "handgrad translate"}
        raise RunError(
            f"{folder} is a run on {trained.task}; expected one on classes or numbers; allowed: "
            f"{instead.get(trained.task or '', 'hg.load(folder).predict(x) in Python')}"
        )
    answers = (a for file in files for a in _answers(trained, file, top, show))
    if as_json:
        typer.echo(json.dumps([answer.record() for answer in answers], indent=1))
    elif as_csv:
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        shown = [("class", "probability")] * min(top, len(trained.classes or ()) or top)
        heads = ("value",) if trained.task == "regression" else sum(shown, ())
        writer.writerow(["example", *heads])
        writer.writerows(answer.row() for answer in answers)
        print_csv(table.getvalue())
    else:
        for answer in answers:
            typer.echo(answer.line())


def _check_order(folder: Path, files: Sequence[Path]) -> None:
    """Raise ArgumentError where data stand before the run, or in its place."""
    if (folder / "config.toml").exists() or folder.suffix == ".safetensors":
        return
    run = next((file for file in files if (file / "config.toml").exists()), None)
    if run is not None:
        raise ArgumentError(
            f"predict: {folder} is no run, and {run} is one; allowed: the run first, as in "
            f"handgrad predict {run} {folder}"
        )
    if folder.is_file():
        raise ArgumentError(
            f"predict: {folder} is no run; allowed: the folder of a run, or a .safetensors file, "
            "and then the data"
        )


def _answers(trained: TrainedModel, file: Path, top: int, show: Path | None) -> Iterator[_Answer]:
    from handgrad.data.images import SUFFIXES

    if file.is_dir():
        pictures = sorted(each for each in file.rglob("*") if each.suffix.lower() in SUFFIXES)
        if not pictures:
            raise DataError(f"{file} has no images; expected one of {', '.join(sorted(SUFFIXES))}")
        for picture in pictures:
            yield from _answers(trained, picture, top, show)
    elif file.suffix.lower() in SUFFIXES:
        probabilities, reading = trained.read_picture(file)
        if show is not None:
            _write(reading, show / f"{file.stem}.png")
            typer.echo(f"{file}: {', '.join(reading.done)}", err=True)
        if reading.doubts:
            typer.echo(f"Warning: {file} may show none of these: {reading.doubts[0]}", err=True)
        best = _best(trained, probabilities, top)
        yield _Answer(str(file), best, None, reading.done, reading.doubts)
    else:
        examples = _examples(trained, file)
        names = [f"{file}[{i}]" if len(examples) > 1 else str(file) for i in range(len(examples))]
        if trained.task == "regression":
            for name, value in zip(names, trained.predict(examples), strict=True):
                yield _Answer(name, number=float(value))
        else:
            for name, row in zip(names, trained.predict_proba(examples), strict=True):
                yield _Answer(name, _best(trained, row, top))


def _best(trained: TrainedModel, row: Array, top: int) -> tuple[tuple[str, float], ...]:
    """The classes of a row of probabilities, first the one that is answered, then by these."""
    answered = int(trained.decide(row))
    order = [answered, *(c for c in row.argsort()[::-1].tolist() if c != answered)]
    return tuple((trained.name_of(c), float(row[c])) for c in order[:top])


def _examples(trained: TrainedModel, file: Path) -> Array:
    """The examples in a file, in the form that the model takes."""
    import numpy as np

    from handgrad.data.encoding import TableEncoding
    from handgrad.data.examples import read_examples
    from handgrad.data.table import is_table
    from handgrad.data.unlabelled import read_cells, read_rows
    from handgrad.inference.preprocessing import Scale

    shape = trained.input_shape or ()
    steps = trained.preprocessing.steps
    scale = next((step.maximum for step in steps if isinstance(step, Scale)), None)
    if str(file) == "-":
        # Tables are read from files alone, whose size bounds their memory.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "standard input.csv"
            path.write_bytes(sys.stdin.buffer.read())
            try:
                return _examples(trained, path)
            except DataError as error:
                raise DataError(str(error).replace(str(path), "standard input")) from None
    if is_table(file.name) and any(isinstance(step, TableEncoding) for step in steps):
        return read_cells(file, trained.columns)
    if is_table(file.name):
        rows = read_rows(file, math.prod(shape), trained.columns).reshape(-1, *shape)
        return rows if scale is None else rows / np.float32(scale)
    return read_examples(file, shape, scale, any_length=trained.takes_any_length)


def _write(reading: Reading, path: Path) -> None:
    """The first view, each pixel enlarged to be seen."""
    import numpy as np
    from PIL import Image

    pixels = np.rint(255 * reading.x[0].transpose(1, 2, 0)).astype(np.uint8)
    side = max(1, 256 // max(pixels.shape[:2]))
    enlarged = pixels.repeat(side, axis=0).repeat(side, axis=1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = io.BytesIO()
        Image.fromarray(enlarged.squeeze()).save(drawn, "PNG")
        write_file(path, drawn.getvalue())
    except OSError as error:
        raise RunError(f"{path} cannot be written: {reason(error)}") from None
