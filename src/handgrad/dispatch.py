"""The one place that decides how an op runs: as its reference or as its kernel.

An op is a module with `forward` and `backward`, both marked `@operation`, and, where arguments can
be wrong, `validate` with forward's signature. The reference is the marked function itself; the
kernel is the function of the same name in `handgrad.kernels.<stem>`. Three engines:

- `auto` (default): the kernel wherever one exists and the arguments are NumPy arrays of one float
  type (float32 or float64); the reference for everything else (PyTorch, JAX, float16, ...).
- `kernels`: the kernel, or an `EngineError` that says why not. Nothing falls back silently.
- `reference`: the reference, always.

A cache made by a kernel goes to the kernel's backward whatever the engine says by then: a pair
belongs together.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeVar

import numpy as np

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.errors import ArgumentError, EngineError

ENGINES: Final = ("auto", "kernels", "reference")

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
_PLAIN: Final = frozenset({int, float, str, bool, tuple, list, type(None), np.random.Generator})


class _Skip:
    """In `backward(..., out=(SKIP, dweight))`: this gradient is not wanted, and comes back None."""

    def __repr__(self) -> str:
        return "SKIP"


SKIP: Final = _Skip()


def _named_engine(name: str, origin: str) -> str:
    if name not in ENGINES:
        raise ArgumentError(f"{origin} is {name!r}; allowed: {', '.join(ENGINES)}")
    return name


_engine = _named_engine(os.environ.get("HANDGRAD_ENGINE", "auto"), "HANDGRAD_ENGINE")


def get_engine() -> str:
    """The engine asked for: `auto`, `kernels` or `reference`."""
    return _engine


def set_engine(name: str) -> None:
    """Choose the engine for the calls that follow. Raises ArgumentError for an unknown name."""
    global _engine
    if _named_engine(name, "engine") == "kernels" and kernels.native is None:
        raise EngineError(f"engine 'kernels' is not available: {kernels.reason}")
    _engine = name


@contextmanager
def engine(name: str) -> Iterator[None]:
    """`with hg.engine("reference"): ...` runs the block on that engine."""
    previous = get_engine()
    set_engine(name)
    try:
        yield
    finally:
        set_engine(previous)


@functools.cache
def _kernel_module(stem: str) -> ModuleType | None:
    """The module with the kernels of op `stem`; None where there is none or no native code."""
    if kernels.native is None or stem in kernels.PENDING:
        return None
    return import_module(f"handgrad.kernels.{stem}")


def _refusal(arguments: Any) -> str | None:
    """Why these arguments cannot go to a kernel; None if they can."""
    dtype = None
    for value in arguments:
        if type(value) is np.ndarray:
            if value.dtype.kind == "f":
                if value.dtype not in _FLOATS:
                    return f"an array of {value.dtype}"
                if dtype is None:
                    dtype = value.dtype
                elif value.dtype != dtype:
                    return f"arrays of {dtype} and {value.dtype} together"
            elif value.dtype.kind not in "iub":
                return f"an array of {value.dtype}"
        elif type(value) not in _PLAIN and not isinstance(value, (np.generic, np.random.Generator)):
            return f"a {type(value).__module__}.{type(value).__name__}"
    return None if dtype is not None else "no array of floats"


def _is_plain(array: np.ndarray) -> bool:
    return bool(array.flags.c_contiguous and array.flags.aligned)


def _contiguous(value: Any) -> Any:
    if type(value) is np.ndarray and not _is_plain(value):
        return np.require(value, requirements=("C", "A"))
    return value


def _kernel_for(stem: str, arguments: Any) -> ModuleType | None:
    """The kernel module to use for these arguments under the current engine, or None."""
    if _engine == "reference":
        return None
    module = _kernel_module(stem)
    refusal = _refusal(arguments) if module is not None else None
    if module is not None and refusal is None:
        return module
    if _engine == "kernels":
        found = f"found {refusal}" if refusal else "this op has no kernel yet"
        raise EngineError(
            f"ops.{stem}: engine 'kernels' takes NumPy arrays of one type, float32 or float64; "
            f"{found}; engine 'auto' would use the reference"
        )
    return None


def _place(gradients: Any, out: Any) -> Any:
    """Put the reference's gradients where the caller wants them; see `operation`."""
    if out is None:
        return gradients
    several = isinstance(gradients, tuple)
    found = gradients if several else (gradients,)
    placed: list[Any] = []
    for gradient, place in zip(found, out, strict=True):
        if place is SKIP:
            placed.append(None)
        elif place is None or gradient is None:
            placed.append(gradient)
        else:
            place[...] = gradient
            placed.append(place)
    return tuple(placed) if several else placed[0]


def operation(reference: Function) -> Function:
    """Mark an op's `forward` or `backward`; the call goes to the kernel or to the reference.

    The function itself stays reachable as `.reference`. A dispatched backward also takes
    `out=`: one entry per gradient, an array to write into, None to allocate, SKIP to leave out.
    """
    module_name = reference.__module__
    stem = module_name.rpartition(".")[2]
    if reference.__name__ == "forward":
        dispatched = _dispatched_forward(reference, stem, sys.modules[module_name])
    else:
        dispatched = _dispatched_backward(reference, stem)
    functools.update_wrapper(dispatched, reference)
    dispatched.reference = reference  # type: ignore[attr-defined]
    return dispatched  # type: ignore[return-value]


def _dispatched_forward(
    reference: Callable[..., Any], stem: str, home: ModuleType
) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        validate = getattr(home, "validate", None)
        if validate is not None:
            validate(*args, **kwargs)
        arguments = (*args, *kwargs.values()) if kwargs else args
        kernel = _kernel_for(stem, arguments)
        if kernel is None:
            return reference(*args, **kwargs)
        for argument in arguments:
            if type(argument) is np.ndarray and not _is_plain(argument):
                args = tuple(_contiguous(value) for value in args)
                kwargs = {name: _contiguous(value) for name, value in kwargs.items()}
                break
        return kernel.forward(*args, **kwargs)

    return forward


def _dispatched_backward(reference: Callable[..., Any], stem: str) -> Callable[..., Any]:
    def backward(dy: Array, cache: Any, out: Any = None) -> Any:
        kernel = _kernel_module(stem)
        if kernel is not None and type(cache) is kernel.Cache:
            return kernel.backward(_contiguous(dy), cache, out=out)
        return _place(reference(dy, cache), out)

    return backward
