"""Files of cells as notebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
#: In the order in which they are best read.
SOURCES: Final = tuple(
    HERE / f"{name}.py"
    for name in (
        "from_xor_to_gpt",
        "find_the_bug",
        "print_your_notes",
        "own_data",
        "kernel_writers_day",
        "wide_networks",
    )
)

_BEGIN: Final = re.compile(r"^# %%( \[markdown\])?\n", re.M)


class Cell(NamedTuple):
    """A cell; `line` is that of its text in the file."""

    kind: str
    text: str
    line: int


def cells(source: str) -> list[Cell]:
    """The cells of a file."""
    found = []
    begins = list(_BEGIN.finditer(source))
    ends = [each.start() for each in begins[1:]] + [len(source)]
    for begin, end in zip(begins, ends, strict=True):
        text = source[begin.end() : end].strip("\n")
        if begin[1]:
            text = re.sub(r"^# ?", "", text, flags=re.M)
        kind = "markdown" if begin[1] else "code"
        found.append(Cell(kind, text, source[: begin.end()].count("\n") + 1))
    return found


def notebook(source: str) -> str:
    """The notebook of a file, without outputs, in JSON of nbformat 4.5."""
    written = [
        {
            "cell_type": cell.kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": cell.text.splitlines(keepends=True),
            **({"execution_count": None, "outputs": []} if cell.kind == "code" else {}),
        }
        for number, cell in enumerate(cells(source))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": written,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
