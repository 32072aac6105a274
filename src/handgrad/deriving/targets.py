"""The forward that is meant, and the shapes that its own annotations give."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from handgrad.ops.samples import sample_inputs
from handgrad.program.tensors.parameters import function_of, is_module, written

_ARRAY: Final = re.compile(r"Float\[\w+, ['\"]([^'\"]*)['\"]\](.*)")
#: Axes for several at once, as in "*batch D".
_SEVERAL: Final = {"*shape": ("N", "D")}


def forward_of(target: Any) -> tuple[str, Callable[..., Any], dict[str, tuple[str, ...]]]:
    """The name, the function, and the axes of arrays by its annotations.

    Raises ArgumentError for what is no function, and no op.
    """
    if isinstance(target, str):
        if target not in OPS:
            raise ArgumentError(
                f"derive: target is {target!r}; allowed: a function, or an op: {', '.join(OPS)}"
            )
        target = import_module(f"handgrad.ops.{target}")
    name = str(getattr(target, "__name__", type(target).__name__)).rpartition(".")[2]
    if isinstance(target, tuple) and target and callable(target[0]):
        target = target[0]
        name = str(getattr(target, "__name__", "forward"))
    target = written(target)
    if is_module(target):
        return name, _readable(function_of(target)), {}
    has_own = isinstance(target, ModuleType) or not callable(target)
    function = getattr(target, "forward", None) if has_own else target
    if not callable(function):
        raise ArgumentError(
            f"derive: target is a {type(target).__name__}; allowed: a function, or an op"
        )
    function = _readable(getattr(function, "reference", function))
    axes: dict[str, tuple[str, ...]] = {}
    if isinstance(target, ModuleType):
        for parameter in inspect.signature(function).parameters.values():
            match = _ARRAY.fullmatch(str(parameter.annotation))
            if match is not None and parameter.default is inspect.Parameter.empty:
                axes[parameter.name] = _axes(match[1])
    return name, function, axes


def _readable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function. Raises ArgumentError for one whose arguments cannot be known."""
    try:
        is_python = not isinstance(function, np.ufunc)
        inspect.signature(function)
    except ValueError:
        is_python = False
    if not is_python:
        name = getattr(function, "__name__", type(function).__name__)
        raise ArgumentError(
            f"derive: the arguments of {name} cannot be read, for it is not written in Python; "
            f"allowed: a function that calls it, such as lambda x: {name}(x)"
        )
    return function


def op_examples(target: Any, axes: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Ways to call an op: with shapes by its annotations, and with its first sample."""
    if axes:
        yield dict(axes)
    op = import_module(f"handgrad.ops.{target}") if isinstance(target, str) else target
    if isinstance(op, ModuleType) and op.__name__.startswith("handgrad.ops."):
        name = op.__name__.rpartition(".")[2]
        usual = sample_inputs(name, np.random.default_rng(0))[0]
        yield {**usual.arrays, **usual.options}


def _axes(text: str) -> tuple[str, ...]:
    """`*batch D` as N, D: one axis stands for any number in front."""
    found: list[str] = []
    for each in text.split():
        several = _SEVERAL.get(each, ("N",)) if each.startswith("*") else (each.lstrip("#"),)
        found += several
    return tuple(found)
