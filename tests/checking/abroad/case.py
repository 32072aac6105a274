"""A program of the corpus, the faults people plant in it, and modules made from its text."""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

#: Below this line a file says how its program is called; the program above it stands alone.
MARK = "# ---- the case\n"
HERE = Path(__file__).parent
STYLES = ("functions", "classes", "loops", "frameworks", "training", "several", "helpers")
_numbers = count()


@dataclass(frozen=True)
class Wrong:
    """`old`, which is in the program once, is replaced by `new`.

    `cause` is a key of `judge.SAID`, or free words with `says`, regular expressions of which a
    sentence that names the cause matches one. `at` names the situation in which the gradients
    differ: a function of the case that makes inputs, "twice", "writes" or "layout".
    """

    old: str
    new: str
    cause: str
    says: tuple[str, ...] = ()
    at: str = "inputs"


@dataclass(frozen=True)
class Program:
    """One file: the program's text, and what its case adds."""

    style: str
    name: str
    text: str
    case: str

    def __str__(self) -> str:
        return f"{self.style}/{self.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The framework that the program imports."""
        return tuple(each for each in ("torch", "jax") if f"import {each}" in self.text)

    @cached_property
    def variants(self) -> tuple[tuple[Wrong, ...], ...]:
        """One tuple of faults for every wrong variant."""
        with tempfile.TemporaryDirectory() as folder:  # of its own: others read the corpus too
            listed = self.scope(self.text, Path(folder))["WRONG"]
        return tuple(each if isinstance(each, tuple) else (each,) for each in listed)

    def planted(self, faults: tuple[Wrong, ...]) -> str:
        """The program with these faults."""
        text = self.text
        for fault in faults:
            found = text.count(fault.old)
            if found != 1:
                raise ValueError(f"{self}: {fault.old!r} is there {found} times; allowed: once")
            text = text.replace(fault.old, fault.new)
        return text

    def lines(self, fault: Wrong, faults: tuple[Wrong, ...]) -> set[int]:
        """The lines of the wrong program that this one of its faults changed."""
        others = tuple(each for each in faults if each is not fault)
        return changed(self.planted(others), self.planted(faults))

    def scope(self, text: str, folder: Path) -> dict[str, Any]:
        """The names of the program, imported from a file of its own, and of its case."""
        scope = dict(vars(imported(text, self.name, folder)))
        scope |= {"Wrong": Wrong, "normal": normal}
        exec(compile(self.case, f"<case of {self}>", "exec"), scope)
        return scope


def normal(*shapes: tuple[int, ...] | int) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """Normally distributed inputs of these shapes."""
    return lambda rng: tuple(rng.standard_normal(shape) for shape in shapes)


def changed(before: str, after: str) -> set[int]:
    """Lines of `after` that are not in `before`; of lines that went, both neighbours.

    Where the line that went changed a variable, the line before it that made the variable counts
    too: what is missing can be put there.
    """
    found: set[int] = set()
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, False)
    for tag, start, stop, first, last in matcher.get_opcodes():
        if tag == "delete":
            found |= {first, first + 1}
            for target in re.findall(r"^ *(\w+)\b.*?[^=<>!]=[^=]", "\n".join(old[start:stop]), re.M):
                made = [k for k in range(first) if re.match(rf" *{target}\b[^(]*=[^=]", new[k])]
                found |= {k + 1 for k in made[-1:]}
        elif tag != "equal":
            found |= set(range(first + 1, last + 1))
    return found


def imported(text: str, name: str, folder: Path) -> ModuleType:
    """The module that this text is, from a file in `folder`."""
    path = folder / f"{name}_{next(_numbers)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    np.random.seed(0)  # noqa: NPY002  programs draw their weights from it as they are imported
    spec.loader.exec_module(module)
    return module


def programs(folder: Path = HERE, style: str | None = None) -> Iterator[Program]:
    """Every program of the corpus in `folder`."""
    for each in STYLES if style is None else (style,):
        for path in sorted((folder / each).glob("*.py")):
            text, mark, case = path.read_text(encoding="utf-8").partition(MARK)
            if not mark:
                raise ValueError(f"{path}: there is no line {MARK.strip()!r}; allowed: one")
            yield Program(each, path.stem, text, case)
