"""The one place that decides how an op runs: as its reference or as its kernel.

An op is a module with `forward` and `backward`, both marked `@operation`, and, where arguments can
be wrong, `validate` with forward's signature; where that takes looking at values, such as token
numbers, also `validate_values`, which kernels do on the way. The reference is the marked function
itself; the kernel is the function of the same name in `handgrad.kernels.<stem>`. Three engines:

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
from handgrad.errors import ArgumentError, EngineError, ShapeError

ENGINES: Final = ("auto", "kernels", "reference")

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOAT32: Final = np.dtype(np.float32)
_FLOAT64: Final = np.dtype(np.float64)
_PLAIN: Final = frozenset({int, float, str, bool, tuple, list, type(None), np.random.Generator})

#: Whether arguments can go to a kernel as they are; native, since every call waits for it.
_fits: Final[Any] = getattr(kernels.native, "fits", None)


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


class KernelCache:
    """What a kernel kept for its backward, and what that one's dy must be like.

    The fields of the kernel's own cache can be read from it.
    """

    __slots__ = ("dtype", "kept", "kernel", "shape", "stem")

    def __init__(self, stem: str, kernel: ModuleType, kept: Any, y: Array) -> None:
        self.stem = stem
        self.kernel = kernel
        self.kept = kept
        self.shape = y.shape
        self.dtype = y.dtype

    def __getattr__(self, name: str) -> Any:
        if name in KernelCache.__slots__:  # not set yet, as while a copy is being made
            raise AttributeError(name)
        return getattr(self.kept, name)

    def __repr__(self) -> str:
        return f"{self.stem}.{self.kept!r}"


def _refusal(arguments: Any) -> str | None:
    """Why these arguments cannot go to a kernel, not even as copies; None if they can."""
    floats = None
    for value in arguments:
        if type(value) is np.ndarray:
            if value.dtype.kind == "f":
                if value.dtype not in (_FLOAT32, _FLOAT64):
                    return f"an array of {value.dtype}"
                if floats is None:
                    floats = value.dtype
                elif value.dtype != floats:
                    return f"arrays of {floats} and {value.dtype} together"
            elif value.dtype.kind not in "iub":
                return f"an array of {value.dtype}"
        elif type(value) not in _PLAIN and not isinstance(value, np.generic):
            return f"a {type(value).__module__}.{type(value).__name__}"
    return None if floats is not None else "no array of floats"


def _contiguous(value: Any) -> Any:
    """An array as kernels read it, copied if need be; anything else as it is."""
    if type(value) is np.ndarray and not (value.flags.c_contiguous and value.flags.aligned):
        return np.require(value, requirements=("C", "A"))
    return value


def _check_kernel(name: str, refusal: str | None) -> None:
    """Raise EngineError if the user asked for kernels and there is none for this call."""
    if _engine == "kernels":
        found = f"found {refusal}" if refusal else "this op has no kernel yet"
        raise EngineError(
            f"{name}: engine 'kernels' takes NumPy arrays of one type, float32 or float64; "
            f"{found}; engine 'auto' would use the reference"
        )


def implementation(reference: ModuleType, arrays: tuple[Any, ...]) -> ModuleType:
    """For what is no op but has a kernel of its name, such as a model's loop: which one to call.

    `arrays` are those that decide, as they decide for an op; the kernel takes them C-contiguous.
    """
    stem = reference.__name__.rpartition(".")[2]
    kernel = None if _engine == "reference" else _kernel_module(stem)
    refusal = None if kernel is None else _refusal(arrays)
    if kernel is not None and refusal is None:
        return kernel
    _check_kernel(stem, refusal)
    return reference


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
    @functools.cache
    def check(name: str) -> Callable[..., None]:
        """The op's own `validate` or `validate_values`, which stand below its forward."""
        return getattr(home, name, lambda *args, **kwargs: None)

    def forward(*args: Any, **kwargs: Any) -> Any:
        check("validate")(*args, **kwargs)
        if _engine != "reference":
            kernel = _kernel_module(stem)
            refusal = None
            if kernel is not None and not _fits(args, kwargs, _PLAIN):
                refusal = _refusal((*args, *kwargs.values()))
                if refusal is None:
                    args = tuple(_contiguous(value) for value in args)
                    kwargs = {name: _contiguous(value) for name, value in kwargs.items()}
            if kernel is not None and refusal is None:
                try:
                    y, kept = kernel.forward(*args, **kwargs)
                except IndexError:
                    # Kernels look at indices as they use them; the op has the words for it.
                    check("validate_values")(*args, **kwargs)
                    raise
                return y, KernelCache(stem, kernel, kept, y)
            _check_kernel(f"ops.{stem}", refusal)
        check("validate_values")(*args, **kwargs)
        return reference(*args, **kwargs)

    return forward


def _dispatched_backward(reference: Callable[..., Any], stem: str) -> Callable[..., Any]:
    def backward(dy: Array, cache: Any, out: Any = None) -> Any:
        if type(cache) is not KernelCache:
            return _place(reference(dy, cache), out)
        if dy.shape != cache.shape or dy.dtype != cache.dtype:
            raise ShapeError(
                f"{stem}: dy is of {dy.dtype} and has shape {tuple(dy.shape)}; "
                f"allowed: {cache.dtype} and {cache.shape}, as y"
            )
        return cache.kernel.backward(_contiguous(dy), cache.kept, out=out)

    return backward
