"""The worker's Python side: one function per tab, from a message to an answer.

A message has `source`, the reader's file with forward and backward, and `inputs`, a list of
`{"name", "kind", "values"}` with kind float, int or bool. An answer has `parameters`, the names of
forward's inputs, and either what the tab shows or `error`, one sentence.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

import handgrad as hg
from handgrad.errors import ArgumentError, HandgradError
from handgrad.targets import resolve

FILE: Final = Path("yours.py")
_DATES: Final = count()

Input = Mapping[str, Any]


def check(module: ModuleType, inputs: Sequence[Input]) -> dict[str, Any]:
    """The report on random numbers in the inputs' shapes: whole ones hide bugs."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(np.shape(each["values"])) if each["kind"] == "float" else _array(each)
        for each in inputs
    ]
    report = hg.check((module.forward, module.backward), *arrays)
    return {"report": report.to_dict()}


def notes(module: ModuleType, inputs: Sequence[Input]) -> dict[str, Any]:
    """The page of notes, with every value for these inputs."""
    return {"page": hg.notes(module, *map(_array, inputs), numbers=True).to_html()}


def derive(module: ModuleType, inputs: Sequence[Input]) -> dict[str, Any]:
    """The page of the backward that follows from forward alone, for arrays as these are."""
    return {"page": hg.derive(module.forward, *map(_array, inputs)).notes().to_html()}


#: The tabs of the page, by name: a new one is a function here and a panel there.
TABS: Final[dict[str, Callable[[ModuleType, Sequence[Input]], dict[str, Any]]]] = {
    "check": check,
    "notes": notes,
    "derive": derive,
}


def answer(message: str) -> str:
    """The answer to a message, both in JSON."""
    asked = json.loads(message)
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            found = _answer(asked["tab"], asked["source"], asked["inputs"])
        except HandgradError as error:
            found = {"error": str(error)}
        except BaseException as error:  # sys.exit() in the reader's code must not end the worker
            found = {"error": f"{type(error).__name__}: {error}"}
    return json.dumps({**found, "printed": printed.getvalue()})


def _answer(tab: str, source: str, inputs: Sequence[Input]) -> dict[str, Any]:
    FILE.write_text(source, "utf-8")
    # A second edit of equal length in one second would be taken for the compiled first.
    date = next(_DATES)
    os.utime(FILE, (date, date))
    sys.modules.pop(FILE.stem, None)  # resolve gives the name to the first of its file alone
    module = resolve(str(FILE)).value
    parameters = list(inspect.signature(module.forward).parameters.values())
    names = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    if names != [each["name"] for each in inputs]:
        return {"parameters": names}
    return {"parameters": names, **TABS[tab](module, inputs)}


def _array(given: Input) -> np.ndarray:
    types = {"float": np.float64, "int": np.int64, "bool": np.bool_}
    try:
        return np.array(given["values"], dtype=types[given["kind"]])
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{given['name']}: found values that are no {given['kind']}; allowed: numbers in rows "
            "of equal length"
        ) from None
