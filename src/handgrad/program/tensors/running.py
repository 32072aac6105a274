"""A function on tensors as one on arrays, in double precision."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.program.nodes import mapped
from handgrad.program.tensors.parameters import is_module, unchanged
from handgrad.program.tensors.reading import is_users, reached

#: Types that are computed in double, and the methods that make them.
_SINGLE: Final = ("float32", "float16", "bfloat16")
_CASTS: Final = ("float", "half", "bfloat16")


@dataclass
class Detached:
    """The values that a function detaches: kept from one run, and given again in others.

    A gradient takes what is detached as constant, and so have differences to do.
    """

    kept: list[Any] = field(default_factory=list)
    given: Iterator[Any] | None = None

    def __call__(self, value: Any) -> Any:
        if self.given is None:
            self.kept.append(value.clone())
            return value
        return next(self.given, value)

    def again(self) -> Detached:
        """The same, for a run that gets what was kept."""
        return Detached(self.kept, iter(self.kept))


def of_arrays(function: Callable[..., Any], detached: Detached | None = None) -> Callable[..., Any]:
    """A function on tensors as one on arrays.

    It computes in double what it casts to single precision, as models do that run in half; the
    modules that it reaches, and PyTorch's random numbers, are afterwards as they were.
    """
    return functools.partial(_on_arrays, function, detached or Detached(), 1)


def repeated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The results of a function on tensors, as one on arrays, of two calls after each other."""
    return functools.partial(_on_arrays, function, Detached(), 2)


def _on_arrays(
    function: Callable[..., Any], detached: Detached, times: int, /, *args: Any, **kwargs: Any
) -> Any:
    """The result on arrays; of several times a tuple of all."""
    import torch

    keepers = [each for each in reached(function) if is_module(each) or is_users(each)]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.random.fork_rng(devices=()), torch.enable_grad(), unchanged(keepers):
            results = []
            for _ in range(times):
                given, named = mapped(_tensor, args), mapped(_tensor, kwargs)
                with _double(detached):
                    result = function(*given, **named)
                results.append(mapped(_array, result))
    finally:
        torch.set_default_dtype(before)
    return results[0] if times == 1 else tuple(results)


def _tensor(value: Any) -> Any:
    import torch

    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def _array(value: Any) -> Any:
    return value.detach().numpy().copy() if hasattr(value, "detach") else value


def _double(detached: Detached) -> Any:
    """A mode in which PyTorch computes in double, and detached values are kept or given."""
    import torch
    from torch.overrides import TorchFunctionMode

    single = [getattr(torch, name) for name in _SINGLE]
    casts = [getattr(torch.Tensor, name) for name in _CASTS]
    detaching = (torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__)

    def widened(value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return torch.float64 if value in single else value
        is_single = isinstance(value, torch.Tensor) and value.dtype in single
        return value.double() if is_single else value

    def kept(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return detached(value) if is_float else value

    class Double(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, called: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if called in casts:
                called = torch.Tensor.double
            result = called(*mapped(widened, args), **mapped(widened, kwargs or {}))
            if called in detaching or not torch.is_grad_enabled():
                name = getattr(called, "__name__", "")
                if name.endswith("_") and not name.endswith("__"):
                    result.copy_(kept(result))
                elif isinstance(result, tuple):
                    result = type(result)(map(kept, result))
                else:
                    result = kept(result)
            return result

    return Double()
