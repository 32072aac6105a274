"""The op that a target is, or is meant to be, run as its reference on the same inputs."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np

from handgrad.checking.arguments import accepted
from handgrad.checking.functions import forward_backward
from handgrad.checking.sample_inputs import Setup
from handgrad.checking.trial import backward
from handgrad.dispatch import engine


class KnownOp:
    """An op's own forward and gradients."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.name = module.__name__.rpartition(".")[2]

    def options(self, setup: Setup, keyword: dict[str, Any]) -> dict[str, Any]:
        """The settings that the op has; a layer's own, such as training, may be none of them."""
        return accepted(self.module.forward, {**setup.options, **keyword})

    def forward(self, setup: Setup) -> tuple[Any, Any]:
        """y and the reference's cache."""
        positional, keyword = by_kind(self.module, setup)
        inputs = _arrays(positional)
        functions = forward_backward(self.module, inputs, options=self.options(setup, keyword))
        with engine("reference"):
            given = [array for array in inputs if array is not None]
            result: tuple[Any, Any] = functions.forward(*given)
        return result

    def gradients(self, setup: Setup, dy: Any) -> dict[int, Any]:
        """The gradients for this cotangent by the inputs' positions."""
        positional, keyword = by_kind(self.module, setup)
        inputs = _arrays(positional)
        functions = forward_backward(self.module, inputs, options=self.options(setup, keyword))
        _, cache = self.forward(setup)
        with engine("reference"):
            found = backward(functions, dy, cache)
        return {functions.inputs.index(name): each for name, each in found.items()}


def _arrays(positional: dict[str, Any]) -> list[Any]:
    """Without the constants of a framework's function, which the op has not."""
    return [each for each in positional.values() if each is None or isinstance(each, np.ndarray)]


def by_kind(op: ModuleType | None, setup: Setup) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The arrays that go in by position, and those that forward takes by keyword only.

    None stands for an optional input that is left out before one that is given.
    """
    if op is None:
        return dict(setup.arrays), {}
    parameters = inspect.signature(op.forward).parameters
    keyword = {
        name: array
        for name, array in setup.arrays.items()
        if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
    }
    given = {name: a for name, a in setup.arrays.items() if name not in keyword}
    if not given.keys() <= parameters.keys():  # the user's own, by position
        return given, keyword
    names = list(parameters)
    last = max(names.index(name) for name in given)
    return {name: given.get(name) for name in names[: last + 1]}, keyword
