"""A module of the collection, its variants, and the verdict of the checker on each of them."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType

import numpy as np

import handgrad as hg
from handgrad.errors import HandgradError

Edit = tuple[str, str]

_PRELUDE = """import numpy as np

rng = np.random.default_rng(3)


def n(*shape):
    return rng.standard_normal(shape)

"""
_numbers = count()


@dataclass(frozen=True)
class Interface:
    """A module that defines TARGET and INPUTS, and edits that leave it right or make it wrong."""

    name: str
    text: str
    right: tuple[Edit, ...]
    wrong: tuple[Edit, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(each for each in ("torch", "jax") if f"import {each}" in self.text)

    @property
    def is_available(self) -> bool:
        return all(importlib.util.find_spec(each) is not None for each in self.needs)

    def edited(self, edit: Edit | None) -> str:
        """The text of a variant. Raises ValueError where what is to be replaced is not there."""
        if edit is None:
            return self.text
        if edit[0] not in self.text:
            raise ValueError(f"{self.name}: {edit[0]!r} is not there; allowed: a part of the text")
        return self.text.replace(*edit)

    def module(self, edit: Edit | None, folder: Path) -> ModuleType:
        path = folder / f"{self.name}_{os.getpid()}_{next(_numbers)}.py"
        path.write_text(_PRELUDE + self.edited(edit), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        np.random.seed(0)  # noqa: NPY002  modules draw their weights from it
        spec.loader.exec_module(module)
        return module

    def outcome(self, edit: Edit | None, folder: Path) -> str:
        """right, wrong, said (right, but for gradients that it names), refused or crashed."""
        module = self.module(edit, folder)
        try:
            report = hg.check(module.TARGET, *module.INPUTS)
            text = str(report)
        except HandgradError as error:
            return f"refused: {error}"
        except Exception as error:  # no exception may leave the checker
            return f"crashed: {type(error).__name__}: {error}"
        if "search for the cause ended" in text:
            return f"crashed: {report.faults[0].message}"
        if report.verdict == "undecided":
            told = [fault.message for fault in report.faults] or list(report.undecided)
            return f"refused: {'; '.join(told)}"
        if report.verdict == "right":
            if not report.unjudged:
                return "right"
            return "said" if text.strip().splitlines()[0].count("not judged") else "right"
        return f"wrong: {'; '.join(fault.message for fault in report.faults)}"
