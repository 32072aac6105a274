"""Damaged folders of runs: every damage is named by what evaluates, uses or resumes a run."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from fuzz import _runs
from fuzz.harness import Case, Fault
from fuzz.harness.surface import scratch
from handgrad.errors import HandgradError, HandgradWarning
from handgrad.recipes.runs import load_model, read_recipe

PATIENCE = 60.0

#: Recipes whose runs are damaged: of classes, a text, and pairs of texts.
NAMES: Final = ("digits", "text", "translate")
TOKENIZERS: Final = {"digits": (), "text": ("tokens",), "translate": ("source", "target")}

Damage = Callable[[Path, Path, np.random.Generator], None]


def flip(path: Path, other: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def cut(path: Path, other: Path, rng: np.random.Generator) -> None:
    os.truncate(path, int(rng.integers(path.stat().st_size)))


def grow(path: Path, other: Path, rng: np.random.Generator) -> None:
    with open(path, "ab") as file:
        file.write(rng.bytes(int(rng.integers(1, 100))))


def zero(path: Path, other: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    first = int(rng.integers(len(content)))
    last = first + int(rng.integers(1, 512))
    content[first:last] = bytes(len(content[first:last]))
    path.write_bytes(content)


def shuffle(path: Path, other: Path, rng: np.random.Generator) -> None:
    content = path.read_bytes()
    first, second = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    path.write_bytes(content[second:] + content[first:second] + content[:first])


def remove(path: Path, other: Path, rng: np.random.Generator) -> None:
    path.unlink()


def exchange(path: Path, other: Path, rng: np.random.Generator) -> None:
    shutil.copy(other, path)


def replace_by_what_is_no_file(path: Path, other: Path, rng: np.random.Generator) -> None:
    path.unlink()
    match int(rng.integers(4)):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            path.symlink_to("/nowhere")
        case _:
            path.symlink_to(path.name)


def edit(path: Path, other: Path, rng: np.random.Generator) -> None:
    """Change a value as a person would, so that the file still reads."""
    text = path.read_text("utf-8", errors="surrogateescape")
    numbers = [i for i, c in enumerate(text) if c.isdigit()]
    if path.suffix == ".json" and rng.random() < 0.5:
        content = json.loads(text)
        if isinstance(content, dict) and content:
            key = sorted(content)[int(rng.integers(len(content)))]
            values: list[Any] = [None, 0, -1, 10**400, "x", [], {}, True, 1.5]
            if rng.random() < 0.3:
                del content[key]
            else:
                content[key] = values[int(rng.integers(len(values)))]
        text = json.dumps(content, indent=2)
    elif numbers:
        at = numbers[int(rng.integers(len(numbers)))]
        text = text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :]
    path.write_text(text, "utf-8", errors="surrogateescape")


DAMAGES: Final[tuple[Damage, ...]] = (
    flip,
    cut,
    grow,
    zero,
    shuffle,
    remove,
    exchange,
    replace_by_what_is_no_file,
    edit,
)
FILES: Final = (
    "config.toml",
    "metrics.jsonl",
    "metrics.csv",
    "checkpoint/latest.safetensors",
    "model.safetensors",
    "summary.json",
    "report.html",
    "tokens",
)


def draw(rng: np.random.Generator) -> Case:
    name = NAMES[int(rng.integers(len(NAMES)))]
    finished = bool(rng.random() < 0.8)
    damage = DAMAGES[int(rng.integers(len(DAMAGES)))]
    file = FILES[int(rng.integers(len(FILES)))]
    use = ("evaluate", "resume")[int(rng.random() < 0.4)]
    # In its own folder, the file of another name; or the same of another run.
    swapped = FILES[int(rng.integers(len(FILES)))] if rng.random() < 0.5 else ""

    def run() -> None:
        sample = _runs.sample(name)
        original = sample.finished if finished else sample.unfinished
        folder = scratch() / "run"
        shutil.copytree(original, folder)
        path = folder / _file(name, file)
        within = swapped not in ("", file)
        other = (folder if within else sample.other) / _file(name, swapped if within else file)
        if not path.exists() or not other.exists() or not path.stat().st_size:
            return
        damage(path, other, rng)
        if _same(path, original / _file(name, file)):
            return
        done = _use(sample, folder, use)
        if done is None:
            return
        # It may be made good by training again, or not be read for the model of the last
        # checkpoint, as long as that gives the same.
        repaired = not finished or (file == "summary.json" and damage is remove)
        expected = original if use == "evaluate" else sample.finished
        if repaired and _runs.weights(folder) == _runs.weights(expected):
            return
        raise Fault("silent acceptance", f"{damage.__name__} of {file}: {done}")

    where = f"{use} of {'a finished' if finished else 'an unfinished'} run: {file}"
    return Case(where, run, f"{damage.__name__} of {file} in a run of {name}, then {use}")


def _file(name: str, file: str) -> str:
    if file != "tokens":
        return file
    return f"{(*TOKENIZERS[name], 'tokens')[0]}.json"


def _same(path: Path, original: Path) -> bool:
    return path.is_file() and path.read_bytes() == original.read_bytes()


def _use(sample: _runs.Sample, folder: Path, use: str) -> str | None:
    """None where the damage was reported in one sentence; else what was done silently."""
    try:
        if use == "resume":
            _runs.resume(sample.data, folder)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HandgradWarning)  # an unfinished run
                load_model(folder, read_recipe(folder))
    except HandgradError as error:
        if "\n" in str(error):
            raise Fault("no sentence", str(error)) from None
        return None
    return f"{use} said nothing"
