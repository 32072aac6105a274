"""A function on tensors as one on arrays, in double precision."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.program.nodes import mapped
from handgrad.program.reading import is_users, reached
from handgrad.program.tensors.parameters import is_module, unchanged

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


@dataclass(frozen=True)
class OnTensors:
    """A function on tensors as one on arrays.

    It computes in double what it casts to single precision, as models do that run in half; the
    modules that it reaches, and PyTorch's settings and random numbers, are afterwards as they were.
    """

    function: Callable[..., Any]

    @functools.cached_property
    def _keepers(self) -> list[Any]:
        """The modules and objects that the function may change."""
        return [each for each in reached(self.function) if is_module(each) or is_users(each)]

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], detached: Detached, times: int = 1
    ) -> list[Any]:
        """The results, as arrays, of calls after each other."""
        import torch

        results = []
        with _settings(), torch.random.fork_rng(devices=()), unchanged(self._keepers):
            for _ in range(times):
                given, named = mapped(_tensor, args), mapped(_tensor, kwargs)
                with _double(detached):
                    result = self.function(*given, **named)
                results.append(mapped(_array, result))
        return results

    def gradients(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        dys: list[Any],
        wanted: list[Any],
    ) -> list[Any]:
        """The gradients that PyTorch has for some of the arrays among the arguments.

        dys: cotangents of the results that are floats.
        """
        import torch

        leaves: dict[int, Any] = {}

        def tensor(value: Any) -> Any:
            found = _tensor(value)
            if isinstance(found, torch.Tensor) and found.is_floating_point():
                leaves[id(value)] = found
            return found

        with _settings(), torch.random.fork_rng(devices=()), unchanged(self._keepers):
            given, named = mapped(tensor, args), mapped(tensor, kwargs)
            with _double(Detached()):
                results: list[Any] = []
                mapped(results.append, self.function(*given, **named))
                ys = [y for y in results if isinstance(y, torch.Tensor) and y.is_floating_point()]
                pairs = zip(ys, map(torch.tensor, dys), strict=False)
                total = sum((y * dy).sum() for y, dy in pairs)
                own = [leaves[id(each)] for each in wanted]
                found = torch.autograd.grad(total, own, allow_unused=True)
        return [
            np.zeros(np.shape(x)) if g is None else _array(g)
            for g, x in zip(found, wanted, strict=True)
        ]


@contextmanager
def _settings() -> Iterator[None]:
    """Double precision, gradients as the function itself says, and one thread for small arrays."""
    import torch

    kind, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    try:
        with torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(kind)


def _tensor(value: Any) -> Any:
    """A tensor of an array; of floats one with a gradient, which no function of NumPy takes."""
    import torch

    if not isinstance(value, np.ndarray | np.floating):
        return value
    found = torch.tensor(value)
    return found.requires_grad_().clone() if found.is_floating_point() else found


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
        #: The function's own word on gradients: PyTorch switches them off in the forward of
        #: an autograd.Function, where nothing is detached.
        is_enabled = True

        def is_stopped(self) -> bool:
            if torch.is_grad_enabled():
                self.is_enabled = True
                return False
            return not self.is_enabled or torch.is_inference_mode_enabled()

        def __torch_function__(
            self, called: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if called is torch._C._set_grad_enabled and (args[0] or torch.is_grad_enabled()):
                self.is_enabled = args[0]
            if called in casts:
                called = torch.Tensor.double
            args, kwargs = mapped(widened, args), mapped(widened, kwargs or {})
            result = called(*args, **kwargs)
            if called is torch.nn.functional.embedding:
                return _with_padding_kept(result, detached, *args, **kwargs)
            if called in detaching or self.is_stopped():
                name = getattr(called, "__name__", "")
                if name.endswith("_") and not name.endswith("__"):
                    result.copy_(kept(result))
                elif isinstance(result, tuple):
                    result = type(result)(map(kept, result))
                else:
                    result = kept(result)
            return result

    return Double()


def _with_padding_kept(
    rows: Any,
    detached: Detached,
    index: Any,
    weight: Any,
    padding_idx: Any = None,
    *_: Any,
    **__: Any,
) -> Any:
    """Rows of a table, of which that of padding passes no gradient on."""
    if padding_idx is None:
        return rows
    is_padding = (index == padding_idx % len(weight))[..., None]
    return rows.where(~is_padding, detached(rows))
