"""A function on tensors as one on arrays, in double precision."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.program.nodes import mapped
from handgrad.program.source import nested
from handgrad.program.tensors.module import ATTRIBUTES

#: Attributes and keywords by which a function is known to be one on tensors.
_OF_TENSORS: Final = {
    *(name for name in ATTRIBUTES if not hasattr(np.ndarray, name)),
    *("view", "dim", "keepdim"),
}


def takes_tensors(function: Callable[..., Any]) -> bool:
    """True for a function on PyTorch's tensors: it or what it calls names a function of torch.

    Where it names none, and none of NumPy's, its module decides by what it imports; where that has
    both, a method or a keyword that tensors alone have.
    """
    return _takes_tensors(_plain(function))


@functools.lru_cache(maxsize=256)
def _takes_tensors(function: Any) -> bool:
    if hasattr(function, "takes_tensors"):
        return True
    homes = set(_homes(function))
    if homes & {"torch", "numpy"}:
        return "torch" in homes
    own = getattr(function, "__globals__", {})
    imported = {_home(value) for value in own.values() if isinstance(value, types.ModuleType)}
    if "torch" not in imported or "numpy" not in imported:
        return "torch" in imported
    return any(name in _OF_TENSORS for code in nested(function.__code__) for name in _words(code))


def _words(code: types.CodeType) -> Iterator[str]:
    """The names of attributes and of keywords."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, tuple):
            yield from (each for each in constant if isinstance(each, str))


def _plain(function: Any) -> Any:
    """The function that a method, a partial or an object with __call__ runs."""
    while not isinstance(function, types.FunctionType):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        else:
            called = vars(type(function)).get("__call__")
            if not isinstance(called, types.FunctionType):
                break
            function = called
    return function


def _homes(function: Any) -> Iterator[str]:
    """The packages of what a function names, and of what the user's functions in it name."""
    waiting, seen = [function], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen or not isinstance(each, types.FunctionType):
            continue
        seen.add(id(each))
        values = dict(each.__globals__)
        for name, cell in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True):
            values[name] = getattr(cell, "cell_contents", None)
        used = {
            name for code in nested(each.__code__) for name in (*code.co_names, *code.co_freevars)
        }
        for value in (values[name] for name in used if name in values):
            yield _home(value)
            waiting.append(value)


def _home(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0]
    home = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    return str(home).split(".")[0]


@dataclass
class Detached:
    """The values that a function detaches: kept from one run, and given again in others.

    A gradient takes what is detached as constant, and so have differences to do.
    """

    kept: list[Any] = field(default_factory=list)
    given: Iterator[Any] | None = None

    def __call__(self, value: Any) -> Any:
        if self.given is None:
            self.kept.append(value)
            return value
        return next(self.given, value)

    def again(self) -> Detached:
        """The same, for a run that gets what was kept."""
        return Detached(self.kept, iter(self.kept))


def of_arrays(function: Callable[..., Any], detached: Detached | None = None) -> Callable[..., Any]:
    """The function itself, or one on arrays where it is one on tensors."""
    if not takes_tensors(function):
        return function
    return functools.partial(_on_arrays, function, detached or Detached())


def _on_arrays(
    function: Callable[..., Any], detached: Detached, /, *args: Any, **kwargs: Any
) -> Any:
    """The results of a function on tensors as arrays, for arrays; it computes in double.

    What it casts to single precision, as models do that run in half, stays in double.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    single = {torch.float32: torch.float64, torch.float16: torch.float64}

    def widened(value: Any) -> Any:
        is_single = isinstance(value, torch.dtype) and value in single
        return single[value] if is_single else value

    class Double(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, called: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if called in (torch.Tensor.float, torch.Tensor.half):
                called = torch.Tensor.double
            if called in (torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__):
                return detached(called(*args))
            named = {key: widened(value) for key, value in (kwargs or {}).items()}
            return called(*map(widened, args), **named)

    def tensor(value: Any) -> Any:
        return torch.tensor(value) if isinstance(value, np.ndarray) else value

    def array(value: Any) -> Any:
        return value.numpy() if isinstance(value, torch.Tensor) else value

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), Double():
            result = function(*mapped(tensor, args), **mapped(tensor, kwargs))
    finally:
        torch.set_default_dtype(before)
    return mapped(array, result)
