"""A surface: one module `fuzz/<surface>.py`, found by its name, no list to add it to.

It has a docstring of one sentence and one function:

    def draw(rng: np.random.Generator) -> Case: ...

`draw` makes one random case and must not touch what is under test; `Case.run()` does, in a worker
process. It returns None when all is well and raises `Fault` when not. Every other exception that
leaves it is a fault as well, a raw one. The same `(seed, number)` gives the same case, so nothing
random may come from elsewhere. Optional names in the module:

    PATIENCE = 10.0    # seconds a case may take before the watchdog calls it a hang
    MEMORY = 512       # MiB that the worker may grow beyond its size when it began
    def guided(data: bytes) -> None: ...   # one input for the coverage-guided mode; raises Fault

Seeds of the guided mode lie in `fuzz/seeds/<surface>/`. A module of helpers that is no surface has
a name that begins with an underscore.
"""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

PATIENCE: Final = 10.0
MEMORY: Final = 512

FOLDER: Final = Path(__file__).parents[1]
SEEDS: Final = FOLDER / "seeds"


class Fault(Exception):  # noqa: N818
    """Something is wrong: `kind` in a word or two ("silent mismatch"), and a sentence."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


@dataclass(frozen=True)
class Case:
    """One thing to try.

    `where` names the part under test, such as "conv2d backward": faults of one kind in one part
    are written once. `snippet` is a short program that does the same without the fuzzer, as far as
    that can be said; a function when making it costs time.
    """

    where: str
    run: Callable[[], None]
    snippet: str | Callable[[], str] = ""

    def program(self) -> str:
        return self.snippet if isinstance(self.snippet, str) else self.snippet()


def surfaces() -> list[str]:
    """The names of all surfaces, in order."""
    found = pkgutil.iter_modules([str(FOLDER)])
    return sorted(m.name for m in found if not m.ispkg and not m.name.startswith("_"))


def load(name: str) -> Any:
    """The module of a surface; `package.module` names one that lies elsewhere, as in tests."""
    return importlib.import_module(name if "." in name else f"fuzz.{name}")


def generator(name: str, seed: int, number: int) -> np.random.Generator:
    """The generator of one case."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence((seed, zlib.crc32(name.encode()), number)))
    )


def scratch() -> Path:
    """A folder for a case's files; the watchdog removes it, whatever happened to the worker."""
    return Path(tempfile.mkdtemp(prefix="case-"))
