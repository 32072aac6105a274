"""The course: the exercises in order, the file to start from, and the check of an answer."""

from __future__ import annotations

import ast
import inspect
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad.checking import CheckReport, check
from handgrad.errors import ArgumentError
from handgrad.paths import as_path
from handgrad.targets import resolve

#: The modules of this package that are exercises; number 1 is the first.
NAMES: Final = (
    "relu",
    "dropout",
    "linear",
    "softmax",
    "cross_entropy",
    "embedding",
    "layer_norm",
    "conv1d",
    "rnn",
    "attention",
)


@dataclass(frozen=True)
class Exercise:
    """One exercise, read from its module."""

    number: int
    module: ModuleType

    @property
    def name(self) -> str:
        """The name of the module."""
        return self.module.__name__.rpartition(".")[2]

    @property
    def title(self) -> str:
        """One sentence."""
        return inspect.getdoc(self.module).partition("\n")[0]  # type: ignore[union-attr]

    @property
    def task(self) -> str:
        """The equation, what is special about it, and every shape."""
        return inspect.getdoc(self.module).partition("\n")[2].strip()  # type: ignore[union-attr]

    @property
    def wanted(self) -> str:
        """The gradients that backward returns, as its docstring lists them."""
        return inspect.getdoc(self.module.backward).removeprefix("Return ").rstrip(".")  # type: ignore[union-attr]

    @property
    def hints(self) -> tuple[str, ...]:
        """From a nudge to nearly the answer."""
        hints: tuple[str, ...] = self.module.HINTS
        return hints

    @property
    def op(self) -> str:
        """The op of handgrad that does the same, with more settings."""
        name: str = self.module.OP
        return name

    @property
    def start(self) -> str:
        """The source of a file to write the answer in: everything down to backward's docstring."""
        source = inspect.getsource(self.module)
        description = self._backward.body[0]
        given = "\n".join(source.splitlines()[: description.end_lineno])
        return f'{given}\n    raise NotImplementedError("backward is not written yet")\n'

    @property
    def forward(self) -> str:
        """The source of forward."""
        return inspect.getsource(self.module.forward)

    @property
    def solution(self) -> str:
        """The source of a backward that is right."""
        return inspect.getsource(self.module.backward)

    @property
    def _backward(self) -> ast.FunctionDef:
        definitions = ast.parse(inspect.getsource(self.module)).body
        return next(
            each
            for each in definitions
            if isinstance(each, ast.FunctionDef) and each.name == "backward"
        )

    def examine(self, file: str | Path) -> CheckReport:
        """Run the file, and check its backward.

        Raises ArgumentError where it is no Python file with both functions, cannot be imported, or
        has another forward.
        """
        file = as_path("exercise", file)
        if file.suffix != ".py":
            raise ArgumentError(f"exercise: {file} is no Python file; allowed: a file NAME.py")
        answer = resolve(str(file)).value
        inputs = self.module.inputs(np.random.default_rng(0))
        if not self._same_forward(answer, inputs):
            raise ArgumentError(
                f"exercise: forward in {file} is not that of exercise {self.number}; "
                "allowed: the forward that --start writes"
            )
        report = replace(check((answer.forward, answer.backward), *inputs), target=str(file))
        # A changed line would be the solution.
        faults = tuple(replace(fault, diff="") for fault in report.faults)
        # The same numbers leave no doubt, where a search may find other words for them.
        mistake = self._mistake(answer, inputs) if any(each.gradient for each in faults) else None
        if mistake is not None:
            kind, words = mistake
            faults = (replace(faults[0], kind=kind, message=words, confidence=1.0),)
        return replace(report, faults=faults)

    def _mistake(
        self, answer: ModuleType, inputs: tuple[np.ndarray, ...]
    ) -> tuple[str, str] | None:
        """The kind and sentence of the mistake in the list that gives this answer's numbers."""
        y, cache = answer.forward(*inputs)
        dy = np.asarray(np.random.default_rng(1).standard_normal(np.shape(y)))
        found = answer.backward(dy, cache)
        _, cache = self.module.forward(*inputs)
        for right, wrong, kind, words in getattr(self.module, "MISTAKES", ()):
            names = dict(vars(self.module))
            exec(self.solution.replace(right, wrong), names)
            if _same(found, names["backward"](dy, cache)):
                return kind, words
        return None

    def _same_forward(self, answer: ModuleType, inputs: tuple[np.ndarray, ...]) -> bool:
        """False where arguments or y differ; one that raises is for the report, with its line."""
        names, given = (
            list(inspect.signature(each.forward).parameters) for each in (answer, self.module)
        )
        if names != given:
            return False
        expected, _ = self.module.forward(*inputs)
        with suppress(Exception):
            found, _ = answer.forward(*inputs)
            return np.shape(found) == expected.shape and np.allclose(found, expected)
        return True


def _same(found: Any, expected: Any) -> bool:
    """Return whether gradients, one or several, are alike but for rounding."""
    ours, theirs = (
        each if isinstance(each, tuple | list) else (each,) for each in (expected, found)
    )
    return len(ours) == len(theirs) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b) for a, b in zip(ours, theirs, strict=True)
    )


def exercise(number: int) -> Exercise:
    """The exercise with this number, from 1. Raises ArgumentError where there is none."""
    if not 1 <= number <= len(NAMES):
        raise ArgumentError(f"exercise: found number {number}; allowed: 1 to {len(NAMES)}")
    return Exercise(number, import_module(f"handgrad.exercises.{NAMES[number - 1]}"))
