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
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from handgrad import kernels
from handgrad.errors import ArgumentError, EngineError, ShapeError

ENGINES: Final = ("auto", "kernels", "reference")

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOAT32: Final = np.dtype(np.float32)
_FLOAT64: Final = np.dtype(np.float64)
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


class _Like(NamedTuple):
    """The shape and type of an output, which those of its gradient must equal."""

    shape: tuple[int, ...]
    dtype: Any


def _like(y: Any) -> Any:
    """A `_Like` for every array of nested outputs."""
    return tuple(map(_like, y)) if isinstance(y, tuple) else _Like(y.shape, y.dtype)


class KernelCache:
    """What a kernel kept for its backward, and what that one's dy must be like.

    The fields of the kernel's own cache can be read from it.
    """

    __slots__ = ("kept", "kernel", "like", "stem")

    def __init__(self, stem: str, kernel: ModuleType, kept: Any, y: Any) -> None:
        self.stem = stem
        self.kernel = kernel
        self.kept = kept
        self.like = _like(y)

    def __getattr__(self, name: str) -> Any:
        if name in KernelCache.__slots__:  # not set yet, as while a copy is being made
            raise AttributeError(name)
        return getattr(self.kept, name)

    def __repr__(self) -> str:
        return f"{self.stem}.{self.kept!r}"


def _fits(arguments: Any) -> bool:
    """Whether the arguments can go to a kernel as they are: the usual case, looked at quickly."""
    floats = None
    for value in arguments:
        kind = type(value)
        if kind is np.ndarray:
            dtype = value.dtype
            if dtype is _FLOAT32 or dtype is _FLOAT64:
                if floats is None:
                    floats = dtype
                elif floats is not dtype:
                    return False
            elif dtype.kind not in "iub":
                return False
            if not value.flags.carray:
                return False
        elif kind not in _PLAIN:
            return False
    return floats is not None


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


def _check_kernel(stem: str, refusal: str | None) -> None:
    """Raise EngineError if the user asked for kernels and there is none for this call."""
    if _engine == "kernels":
        found = f"found {refusal}" if refusal else "this op has no kernel yet"
        raise EngineError(
            f"ops.{stem}: engine 'kernels' takes NumPy arrays of one type, float32 or float64; "
            f"{found}; engine 'auto' would use the reference"
        )


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

    def run_kernel(kernel: ModuleType, args: Any, kwargs: Any) -> tuple[Any, KernelCache]:
        try:
            y, kept = kernel.forward(*args, **kwargs)
        except IndexError:
            # Kernels look at indices as they use them; the op has the words for what is wrong.
            check("validate_values")(*args, **kwargs)
            raise
        return y, KernelCache(stem, kernel, kept, y)

    def forward(*args: Any, **kwargs: Any) -> Any:
        check("validate")(*args, **kwargs)
        if _engine != "reference":
            kernel = _kernel_module(stem)
            arguments = (*args, *kwargs.values()) if kwargs else args
            if kernel is not None and _fits(arguments):
                return run_kernel(kernel, args, kwargs)
            refusal = None if kernel is None else _refusal(arguments)
            if kernel is not None and refusal is None:
                copies = [_contiguous(value) for value in args]
                named = {name: _contiguous(value) for name, value in kwargs.items()}
                return run_kernel(kernel, copies, named)
            _check_kernel(stem, refusal)
        check("validate_values")(*args, **kwargs)
        return reference(*args, **kwargs)

    return forward


def _as_outputs(dy: Any, like: Any, stem: str, optional: bool = False) -> Any:
    """dy as kernels read it, nested as the outputs; ShapeError unless it is like them.

    None may stand for the gradient of an output beside the first.
    """
    if type(like) is _Like:
        if dy is None and optional:
            return None
        if dy is None:
            raise ShapeError(f"{stem}: dy is None; allowed: {like.dtype} and {like.shape}, as y")
        if dy.shape != like.shape or dy.dtype != like.dtype:
            raise ShapeError(
                f"{stem}: dy is of {dy.dtype} and has shape {tuple(dy.shape)}; "
                f"allowed: {like.dtype} and {like.shape}, as y"
            )
        return _contiguous(dy)
    if not isinstance(dy, tuple | list) or len(dy) != len(like):
        raise ShapeError(
            f"{stem}: dy is a {type(dy).__name__}; allowed: nested tuples, as the outputs"
        )
    return tuple(
        _as_outputs(given, output, stem, optional or number > 0)
        for number, (given, output) in enumerate(zip(dy, like, strict=True))
    )


def _dispatched_backward(reference: Callable[..., Any], stem: str) -> Callable[..., Any]:
    def backward(dy: Any, cache: Any, out: Any = None) -> Any:
        if type(cache) is not KernelCache:
            return _place(reference(dy, cache), out)
        return cache.kernel.backward(_as_outputs(dy, cache.like, stem), cache.kept, out=out)

    return backward


def part_of_backward(reference: Function) -> Function:
    """Mark a `backward_...` that stands in the reference only: it also takes a kernel's cache."""

    @functools.wraps(reference)
    def backward_part(doutputs: Any, cache: Any, *rest: Any) -> Any:
        if type(cache) is KernelCache:
            cache = cache.kept.as_reference()
        return reference(doutputs, cache, *rest)

    return backward_part  # type: ignore[return-value]
