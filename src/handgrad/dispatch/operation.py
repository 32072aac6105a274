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
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from handgrad import kernels
from handgrad.dispatch.settings import get_engine
from handgrad.errors import EngineError, ShapeError

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOAT32: Final = np.dtype(np.float32)
_FLOAT64: Final = np.dtype(np.float64)
_PLAIN: Final = frozenset({int, float, str, bool, tuple, list, type(None), np.random.Generator})

#: Whether arguments can go to a kernel as they are; native, since every call waits for it.
_fits: Final[Any] = getattr(kernels.native, "fits", None)
#: Whether a kernel that takes views can read an array as it lies.
_has_whole_rows: Final[Any] = getattr(kernels.native, "has_whole_rows", None)
#: Ends a recording that is being made, and says why; see `handgrad.training.step`.
_spoil_recording: Final[Any] = getattr(kernels.native, "spoil_recording", lambda why: None)


class _Skip:
    """In `backward(..., out=(SKIP, dweight))`: this gradient is not wanted, and comes back None."""

    def __repr__(self) -> str:
        return "SKIP"


SKIP: Final = _Skip()


class _Kernel(NamedTuple):
    """An op's module of kernels, and what every call has to know of it, looked up once."""

    stem: str
    module: ModuleType
    takes_views: bool  # it says `STRIDED = True`: any view will do whose last axis is in one piece
    forward_adds: bool
    backward_adds: bool


@functools.cache
def _kernel_of(stem: str) -> _Kernel | None:
    """The kernel of op `stem`; None where there is none or no native code."""
    if kernels.native is None or stem in kernels.PENDING:
        return None
    module = import_module(f"handgrad.kernels.{stem}")
    views = getattr(module, "STRIDED", False)
    return _Kernel(stem, module, views, takes_plus(module.forward), takes_plus(module.backward))


def _like(y: Any) -> Any:
    """The shape and type that the gradient of an output must have; a list of these for several."""
    if type(y) is tuple:
        return [_like(output) for output in y]
    return y.shape, y.dtype


class KernelCache:
    """What a kernel kept for its backward, and what that one's dy must be like.

    The fields of the kernel's own cache can be read from it.
    """

    __slots__ = ("kept", "kernel", "like")

    def __init__(self, kernel: _Kernel, kept: Any, y: Any) -> None:
        self.kernel = kernel
        self.kept = kept
        self.like = _like(y) if type(y) is tuple else (y.shape, y.dtype)

    def __getattr__(self, name: str) -> Any:
        if name in KernelCache.__slots__:  # not set yet, as while a copy is being made
            raise AttributeError(name)
        return getattr(self.kept, name)

    def __repr__(self) -> str:
        return f"{self.kernel.stem}.{self.kept!r}"


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


def _readable(value: Any, views: bool) -> Any:
    """An array as the kernel reads it, copied if need be; anything else as it is."""
    if type(value) is not np.ndarray or (value.flags.c_contiguous and value.flags.aligned):
        return value
    if views and _has_whole_rows(value):
        return value
    _spoil_recording("an array was copied for a kernel")
    return np.require(value, requirements=("C", "A"))


def addend(plus: Any, y: Any) -> Any:
    """`plus` as it can be added to y, or None as it is; ShapeError unless it is like y."""
    if plus is None:
        return None
    if plus.shape != y.shape or plus.dtype != y.dtype:
        raise ShapeError(
            f"plus is of {plus.dtype} and has shape {tuple(plus.shape)}; "
            f"allowed: {y.dtype} and {tuple(y.shape)}, as what it is added to"
        )
    return _readable(plus, False)


@functools.cache
def takes_plus(function: Callable[..., Any]) -> bool:
    """Whether it adds `plus` as it writes y, or dx."""
    return "plus" in inspect.signature(function).parameters


def _check_kernel(name: str, refusal: str | None) -> None:
    """Raise EngineError if the user asked for kernels and there is none for this call."""
    if get_engine() == "kernels":
        found = f"found {refusal}" if refusal else "this op has no kernel yet"
        raise EngineError(
            f"{name}: engine 'kernels' takes NumPy arrays of one type, float32 or float64; "
            f"{found}; engine 'auto' would use the reference"
        )


def implementation(reference: ModuleType, arrays: tuple[Any, ...]) -> ModuleType:
    """For what is no op but has a kernel of its name, such as a model's loop: which one to call.

    `arrays` are those that decide, as they decide for an op; the last axis of each is in one piece.
    """
    stem = reference.__name__.rpartition(".")[2]
    kernel = None if get_engine() == "reference" else _kernel_of(stem)
    refusal = None if kernel is None else _refusal(arrays)
    if kernel is not None and refusal is None:
        return kernel.module
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


def _with(plus: Any, gradients: Any) -> Any:
    """The gradients with `plus`, unless it is None, in the first of them."""
    if plus is None:
        return gradients
    first, *others = gradients if isinstance(gradients, tuple) else (gradients,)
    if first is not None:
        first = addend(plus, first) + first
    return (first, *others) if others else first


def operation(reference: Function) -> Function:
    """Mark an op's `forward` or `backward`; the call goes to the kernel or to the reference.

    The function itself stays reachable as `.reference`. A dispatched backward also takes
    `out=`: one entry per gradient, an array to write into, None to allocate, SKIP to leave out.
    Those of an op of one output take `plus=`, an array that is added to y or to the first
    gradient, as where a skip connection comes back; a kernel whose function has it adds as it
    writes.
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
        """The op's own `validate` or `validate_values`, which may stand below its forward."""
        return getattr(home, name, lambda *args, **kwargs: None)

    def forward(*args: Any, plus: Any = None, **kwargs: Any) -> Any:
        check("validate")(*args, **kwargs)
        if get_engine() != "reference":
            kernel = _kernel_of(stem)
            refusal = None
            if kernel is not None and not _fits(args, kwargs, _PLAIN, kernel.takes_views):
                refusal = _refusal((*args, *kwargs.values()))
                if refusal is None:
                    views = kernel.takes_views
                    args = tuple(_readable(value, views) for value in args)
                    kwargs = {name: _readable(value, views) for name, value in kwargs.items()}
            if kernel is not None and refusal is None:
                adds = plus is not None and kernel.forward_adds
                if adds:
                    kwargs["plus"] = plus
                try:
                    y, kept = kernel.module.forward(*args, **kwargs)
                except IndexError:
                    # Kernels look at indices as they use them; the op has the words for it.
                    check("validate_values")(*args, **kwargs)
                    raise
                if plus is not None and not adds:
                    y = addend(plus, y) + y
                return y, KernelCache(kernel, kept, y)
            _check_kernel(f"ops.{stem}", refusal)
        _spoil_recording(f"ops.{stem} ran as its reference")
        check("validate_values")(*args, **kwargs)
        y, cache = reference(*args, **kwargs)
        return y if plus is None else addend(plus, y) + y, cache

    return forward


def _as_outputs(dy: Any, like: Any, stem: str, views: bool, optional: bool = False) -> Any:
    """dy as kernels read it, nested as the outputs; ShapeError unless it is like them.

    None may stand for the gradient of an output beside the first.
    """
    if type(like) is tuple:
        if dy is None and optional:
            return None
        shape, dtype = like
        if dy is None:
            raise ShapeError(f"{stem}: dy is None; allowed: {dtype} and {shape}, as y")
        if dy.shape != shape or dy.dtype != dtype:
            raise ShapeError(
                f"{stem}: dy is of {dy.dtype} and has shape {tuple(dy.shape)}; "
                f"allowed: {dtype} and {shape}, as y"
            )
        return _readable(dy, views)
    if not isinstance(dy, tuple | list) or len(dy) != len(like):
        raise ShapeError(
            f"{stem}: dy is a {type(dy).__name__}; allowed: nested tuples, as the outputs"
        )
    return tuple(
        _as_outputs(given, output, stem, views, optional or number > 0)
        for number, (given, output) in enumerate(zip(dy, like, strict=True))
    )


def _dispatched_backward(reference: Callable[..., Any], stem: str) -> Callable[..., Any]:
    def backward(dy: Any, cache: Any, out: Any = None, plus: Any = None) -> Any:
        if type(cache) is not KernelCache:
            return _place(_with(plus, reference(dy, cache)), out)
        kernel = cache.kernel
        dy = _as_outputs(dy, cache.like, stem, kernel.takes_views)
        if plus is None:
            return kernel.module.backward(dy, cache.kept, out=out)
        if kernel.backward_adds:
            return kernel.module.backward(dy, cache.kept, out=out, plus=plus)
        return _place(_with(plus, kernel.module.backward(dy, cache.kept, out=out)), out)

    return backward


def part_of_backward(reference: Function) -> Function:
    """Mark a `backward_...` that stands in the reference only: it also takes a kernel's cache."""

    @functools.wraps(reference)
    def backward_part(doutputs: Any, cache: Any, *rest: Any) -> Any:
        if type(cache) is KernelCache:
            cache = cache.kept.as_reference()
        return reference(doutputs, cache, *rest)

    return backward_part  # type: ignore[return-value]
