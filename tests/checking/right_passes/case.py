"""A case: a forward, a right backward, inputs, and an edit that makes backward wrong."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """`twin` replaces a text in the source of backward, or of `of`, a class or function it uses."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    twin: tuple[str, str]
    of: Any = None
    wrt: tuple[str, ...] | None = None
    #: Another name than forward's, where two cases share it.
    label: str = ""

    @property
    def name(self) -> str:
        return f"{self.forward.__module__.rpartition('.')[2]}-{self.label or self.forward.__name__}"

    def wrong(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Forward and backward after the edit."""
        edited = self.of or self.backward
        source = textwrap.dedent(inspect.getsource(edited))
        old, new = self.twin
        assert old in source, f"{self.name}: {old!r} is not in the source of {edited.__name__}"
        scope = dict(vars(inspect.getmodule(self.backward)))
        changed = [(edited, source.replace(old, new))]
        changed += [
            (each, textwrap.dedent(inspect.getsource(each)))
            for each in (self.forward, self.backward)
            if each is not edited
        ]
        for each, text in changed:
            exec(compile(text, f"<{self.name}: {each.__name__}>", "exec"), scope)
        return scope[self.forward.__name__], scope[self.backward.__name__]


def normal(*shapes: tuple[int, ...] | int) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """Normally distributed inputs of these shapes."""
    return lambda rng: tuple(rng.standard_normal(shape) for shape in shapes)
