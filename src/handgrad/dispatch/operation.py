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
belongs together. What users can get wrong is refused here, for every op and on either engine:
arguments by their kind (`signature`), caches (`caches`), dy and `out` (`gradients`).
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

import numpy as np

from handgrad import kernels
from handgrad.dispatch.caches import (
    KernelCache,
    check_kernel_cache,
    check_reference_cache,
    kernel_of,
    likeness,
    reference_cache,
    seal,
)
from handgrad.dispatch.gradients import (
    addend,
    as_gradient,
    as_readable,
    check_apart,
    check_out,
    readable,
    with_plus,
    written,
)
from handgrad.dispatch.settings import get_engine
from handgrad.dispatch.signature import Signature, spoil_recording
from handgrad.errors import ArgumentError, EngineError, HandgradError

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOAT32: Final = np.dtype(np.float32)
_FLOAT64: Final = np.dtype(np.float64)

_is_like: Final[Any] = getattr(kernels.native, "is_like", None)
_seal_of: Final[Any] = getattr(kernels.native, "seal_of", None)


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
        elif hasattr(value, "shape"):
            return f"a {type(value).__module__}.{type(value).__name__}"
    return None if floats is not None else "no array of floats"


def _own_indices(value: Any) -> Any:
    """Indices and masks as a cache may keep them: a copy, which the caller cannot change."""
    own = type(value) is np.ndarray and value.dtype.kind in "ib"
    return value.copy() if own else value


def _check_kernel(name: str, refusal: str | None) -> None:
    """Raise EngineError if the user asked for kernels and there is none for this call."""
    if get_engine() == "kernels":
        found = f"found {refusal}" if refusal else "this op has no kernel yet"
        raise EngineError(
            f"{name}: engine 'kernels' takes NumPy arrays of one type, float32 or float64; "
            f"{found}; engine 'auto' would use the reference"
        )


def loop_forward(reference: ModuleType, deciding: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
    """y and the cache of what is no op but has a kernel of its name, such as a model's loop.

    `deciding` are the arrays that decide between the two as they decide for an op; the last axis of
    each is in one piece.
    """
    stem = reference.__name__.rpartition(".")[2]
    kernel = None if get_engine() == "reference" else kernel_of(stem)
    refusal = None if kernel is None else _refusal(deciding)
    if kernel is not None and refusal is None:
        y, kept = kernel.module.forward(*args)
        return y, KernelCache(kernel, kept, likeness(y), seal(y, kept))
    _check_kernel(stem, refusal)
    found: tuple[Any, Any] = reference.forward(*args)
    return found


def loop_backward(reference: ModuleType, dy: Any, cache: Any) -> Any:
    """The gradients of a loop, from the cache of its forward."""
    if type(cache) is not KernelCache:
        return reference.backward(dy, cache)
    check_kernel_cache(reference.__name__.rpartition(".")[2], cache)
    return cache.kernel.module.backward(dy, cache.kept)


def operation(reference: Function) -> Function:
    """Mark an op's `forward` or `backward`; the call goes to the kernel or to the reference.

    The function itself stays reachable as `.reference`. A dispatched backward also takes
    `out=`: one entry per gradient, an array to write into, None to allocate, SKIP to leave out.
    Those of an op of one output take `plus=`, an array that is added to y or to the first
    gradient, as where a skip connection comes back; a kernel whose function has it adds as it
    writes.

    Both raise ArgumentError or ShapeError for what they cannot take, whatever it is.
    """
    module_name = reference.__module__
    stem = module_name.rpartition(".")[2]
    home = sys.modules[module_name]
    make = _dispatched_forward if reference.__name__ == "forward" else _dispatched_backward
    dispatched = make(reference, stem, home)
    functools.update_wrapper(dispatched, reference)
    dispatched.reference = reference  # type: ignore[attr-defined]
    return dispatched  # type: ignore[return-value]


def _nothing_to_check(*args: Any, **kwargs: Any) -> None:
    pass


def _dispatched_forward(
    reference: Callable[..., Any], stem: str, home: ModuleType
) -> Callable[..., Any]:
    signature = Signature(stem, reference)
    fits, settle = signature.fits, signature.settle
    new_cache = tuple.__new__

    @functools.cache
    def check(name: str) -> Callable[..., None]:
        """The op's own `validate` or `validate_values`, which may stand below its forward."""
        return getattr(home, name, _nothing_to_check)

    def forward(*args: Any, plus: Any = None, **kwargs: Any) -> Any:
        kernel = kernel_of(stem)
        views = kernel is not None and kernel.takes_views
        plain = fits(args, kwargs, views)
        if not plain:
            args, kwargs = settle(args, kwargs)
        check("validate")(*args, **kwargs)
        if get_engine() != "reference":
            refusal = None
            if kernel is not None and not plain:
                refusal = _refusal((*args, *kwargs.values()))
                if refusal is None:
                    args = tuple(readable(value, views) for value in args)
                    kwargs = {name: readable(value, views) for name, value in kwargs.items()}
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
                like = likeness(y) if type(y) is tuple else (y.shape, y.dtype)
                cache = new_cache(KernelCache, (kernel, kept, like, seal(y, kept)))
                return y if plus is None or adds else addend(plus, y) + y, cache
            _check_kernel(f"ops.{stem}", refusal)
        spoil_recording(f"ops.{stem} ran as its reference")
        check("validate_values")(*args, **kwargs)
        args = tuple(_own_indices(value) for value in args)
        kwargs = {name: _own_indices(value) for name, value in kwargs.items()}
        y, kept = reference(*args, **kwargs)
        cache = reference_cache(stem, kept, y)
        return y if plus is None else addend(plus, y) + y, cache

    return forward


def _gradients_of(backward: Callable[..., Any]) -> int:
    """How many gradients it returns, by its annotation."""
    returns = ast.parse(inspect.signature(backward).return_annotation, mode="eval").body
    several = isinstance(returns, ast.Subscript) and ast.unparse(returns.value) == "tuple"
    return len(returns.slice.elts) if several else 1


def _dispatched_backward(
    reference: Callable[..., Any], stem: str, home: ModuleType
) -> Callable[..., Any]:
    count = _gradients_of(reference)
    #: Said by an op whose gradient may be written over the first array that it kept.
    overwrites = getattr(home, "OVERWRITES", False)

    def reference_backward(dy: Any, cache: Any, out: Any, plus: Any) -> Any:
        check_reference_cache(stem, home.Cache, cache)
        like = getattr(cache, "like", None)
        if like is not None:
            dy = as_gradient(stem, dy, like, cache.library)
        if out is not None:
            check_out(stem, out, count)
            check_apart(stem, out, tuple(cache), (dy, plus), overwrites)
        try:
            gradients = reference(dy, cache)
        except Exception as error:
            if like is not None or isinstance(error, HandgradError | MemoryError):
                raise
            raise ArgumentError(
                f"{stem}: the fields of the cache and dy do not fit together; "
                f"allowed: a cache that {stem}.forward returned, and dy like y"
            ) from error
        return written(with_plus(plus, gradients), out)

    def backward(dy: Any, cache: Any, out: Any = None, plus: Any = None) -> Any:
        if type(cache) is not KernelCache:
            return reference_backward(dy, cache, out, plus)
        kernel, kept, like, sealed = cache
        if kernel.stem != stem or _seal_of(kept) != sealed:
            check_kernel_cache(stem, cache)
        if not _is_like(dy, like, kernel.takes_views):
            dy = as_readable(as_gradient(stem, dy, like, "numpy"), kernel.takes_views)
        if out is not None:
            check_out(stem, out, count)
            check_apart(stem, out, tuple(kept), (dy, plus), overwrites)
        try:
            if plus is None:
                return kernel.module.backward(dy, kept, out=out)
            if kernel.backward_adds:
                return kernel.module.backward(dy, kept, out=out, plus=plus)
            gradients = kernel.module.backward(dy, kept, out=out)
        except IndexError as error:  # kernels look at indices again before they reach memory
            raise ArgumentError(
                f"{stem}: the cache was changed since forward: {error}; allowed: the cache as "
                f"{stem}.forward returned it"
            ) from error
        return written(with_plus(plus, gradients), out)

    return backward


def part_of_backward(reference: Function) -> Function:
    """Mark a `backward_...` that stands in the reference only: it also takes a kernel's cache."""
    stem = reference.__module__.rpartition(".")[2]
    own = sys.modules[reference.__module__].Cache

    @functools.wraps(reference)
    def backward_part(doutputs: Any, cache: Any, *rest: Any) -> Any:
        if type(cache) is KernelCache:
            check_kernel_cache(stem, cache)
            cache = cache.kept.as_reference()
        check_reference_cache(stem, own, cache)
        return reference(doutputs, cache, *rest)

    return backward_part  # type: ignore[return-value]
