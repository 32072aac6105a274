"""The op that a target is, or is meant to be: what its reference gives on the same inputs."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np

from handgrad import trees
from handgrad.checking.situations import Setup
from handgrad.checking.targets import pair_of
from handgrad.checking.trial import backward
from handgrad.dispatch import engine


class KnownOp:
    """An op's own forward, gradients and the tree of its backward."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.stem = module.__name__.rpartition(".")[2]
        self.tree = trees.read(module.backward)

    def forward(self, setup: Setup) -> tuple[Any, Any]:
        """y and the reference's cache."""
        positional, keyword = by_kind(self.module, setup)
        inputs = list(positional.values())
        pair = pair_of(self.module, inputs, options={**setup.options, **keyword})
        with engine("reference"):
            result: tuple[Any, Any] = pair.forward(*inputs)
        return result

    def gradients(self, setup: Setup, dy: Any) -> tuple[list[Any], trees.Trace]:
        """The gradients for this cotangent, in order, and the trace of the backward."""
        positional, keyword = by_kind(self.module, setup)
        options = {**setup.options, **keyword}
        pair = pair_of(self.module, list(positional.values()), options=options)
        _, cache = self.forward(setup)
        with engine("reference"):
            found = list(backward(pair, dy, cache).values())
            return found, trees.trace(self.tree, dy, cache)


def by_kind(
    op: ModuleType | None, setup: Setup
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The arrays that go in by position, and those that forward takes by keyword only."""
    if op is None:
        return dict(setup.arrays), {}
    parameters = inspect.signature(op.forward).parameters
    keyword = {
        name: array
        for name, array in setup.arrays.items()
        if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
    }
    return {name: a for name, a in setup.arrays.items() if name not in keyword}, keyword
