"""Dispatch of one op: run it as its reference or as its kernel.

An op is a module with `forward` and `backward`, both marked `@operation`, and, where arguments can
be wrong, `validate` with forward's signature; where that takes looking at values, such as token
numbers, also `validate_values`, which kernels do on the way. The reference is the marked function
itself; the kernel is what `SPEC` in `handgrad.kernels.<op>` declares. Three engines:

- `auto` (default): the kernel wherever one exists and the arguments are NumPy arrays of one float
  type (float32 or float64); the reference for everything else (PyTorch, JAX, float16, ...).
- `kernels`: the kernel, or an `EngineError` that says why not. Nothing falls back silently.
- `reference`: the reference, always.

A cache made by a kernel goes to the kernel's backward whatever the engine says by then: the
two belong together. What users can get wrong is refused here, for every op and on either engine:
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
    seal_of,
)
from handgrad.dispatch.gradients import (
    added,
    added_to_first,
    as_gradient,
    check_apart,
    check_out,
    readable,
    written,
)
from handgrad.dispatch.settings import get_engine
from handgrad.dispatch.signature import Signature
from handgrad.dispatch.translation import translated
from handgrad.errors import ArgumentError, EngineError, HandgradError
from handgrad.kernels.spec import CONTIGUOUS

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOAT32: Final = np.dtype(np.float32)
_FLOAT64: Final = np.dtype(np.float64)

#: Reasons why the calls of a step cannot be captured.
_NOT_CAPTURABLE: Final = "a kernel does more than native calls"
_REFERENCE: Final = "an op ran as its reference"

_is_like: Final[Any] = getattr(kernels.native, "is_like", None)


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
    each is contiguous.
    """
    op = reference.__name__.rpartition(".")[2]
    kernel = None if get_engine() == "reference" else kernel_of(op)
    refusal = None if kernel is None else _refusal(deciding)
    if kernel is not None and refusal is None:
        if not kernel.capturable:
            kernels.invalidate_capture(_NOT_CAPTURABLE)
        y, kept = kernel.forward(*args)
        return y, KernelCache(kernel, kept, likeness(y), seal(y, kept))
    _check_kernel(op, refusal)
    kernels.invalidate_capture(_REFERENCE)
    found: tuple[Any, Any] = reference.forward(*args)
    return found


def loop_backward(reference: ModuleType, dy: Any, cache: Any) -> Any:
    """The gradients of a loop, from the cache of its forward."""
    if type(cache) is not KernelCache:
        return reference.backward(dy, cache)
    check_kernel_cache(reference.__name__.rpartition(".")[2], cache)
    return cache.kernel.backward(dy, cache.kept)


def operation(reference: Function) -> Function:
    """Mark an op's `forward` or `backward`; the call goes to the kernel or to the reference.

    The function itself stays reachable as `.reference`. A dispatched backward also takes
    `out=`: one entry per gradient, an array to write into, None to allocate, SKIP to leave out.
    Those of an op of one output take `residual=`, an array that is added to y or to the first
    gradient, as where a skip connection comes back; a kernel that says so in its `SPEC` adds as it
    writes.

    Both raise ArgumentError or ShapeError for what they cannot take, whatever it is.
    """
    module_name = reference.__module__
    op = module_name.rpartition(".")[2]
    home = sys.modules[module_name]
    make = _dispatched_forward if reference.__name__ == "forward" else _dispatched_backward
    dispatched = make(reference, op, home)
    functools.update_wrapper(dispatched, reference)
    dispatched.reference = reference  # type: ignore[attr-defined]
    return dispatched  # type: ignore[return-value]


def _nothing_to_check(*args: Any, **kwargs: Any) -> None:
    pass


def _dispatched_forward(
    reference: Callable[..., Any], op: str, home: ModuleType
) -> Callable[..., Any]:
    signature = Signature(op, reference)
    fits, settle = signature.fits, signature.settle
    new_cache = tuple.__new__

    @functools.cache
    def check(name: str) -> Callable[..., None]:
        """The op's own `validate` or `validate_values`, which may stand below its forward."""
        return getattr(home, name, _nothing_to_check)

    def forward(*args: Any, residual: Any = None, **kwargs: Any) -> Any:
        kernel = kernel_of(op)
        layout = CONTIGUOUS if kernel is None else kernel.layout
        plain = fits(args, kwargs, layout)
        if not plain:
            args, kwargs = settle(args, kwargs)
        check("validate")(*args, **kwargs)
        if get_engine() != "reference":
            refusal = None
            if kernel is not None and not plain:
                refusal = _refusal((*args, *kwargs.values()))
                if refusal is None:
                    args = tuple(readable(value, layout) for value in args)
                    kwargs = {name: readable(value, layout) for name, value in kwargs.items()}
            if kernel is not None and refusal is None:
                if not (kernel.capturable or kernel.forward_capturable):
                    kernels.invalidate_capture(_NOT_CAPTURABLE)
                try:
                    if residual is None or not kernel.adds_residual_forward:
                        y, kept = kernel.forward(*args, **kwargs)
                    else:
                        y, kept = kernel.forward(*args, residual=residual, **kwargs)
                        residual = None  # y has it
                except IndexError:
                    # Kernels look at indices as they use them; the op has the words for it.
                    check("validate_values")(*args, **kwargs)
                    raise
                like = likeness(y) if type(y) is tuple else (y.shape, y.dtype)
                cache = new_cache(KernelCache, (kernel, kept, like, seal(y, kept)))
                return y if residual is None else added(residual, y), cache
            _check_kernel(f"ops.{op}", refusal)
        kernels.invalidate_capture(_REFERENCE)
        check("validate_values")(*args, **kwargs)
        args = tuple(_own_indices(value) for value in args)
        kwargs = {name: _own_indices(value) for name, value in kwargs.items()}
        y, kept = translated(reference)(*args, **kwargs)
        cache = reference_cache(op, kept, y)
        return added(residual, y), cache

    return forward


def _gradients_of(backward: Callable[..., Any]) -> int:
    """The number of gradients that it returns, by its annotation."""
    returns = ast.parse(inspect.signature(backward).return_annotation, mode="eval").body
    several = isinstance(returns, ast.Subscript) and ast.unparse(returns.value) == "tuple"
    return len(returns.slice.elts) if several else 1


def _dispatched_backward(
    reference: Callable[..., Any], op: str, home: ModuleType
) -> Callable[..., Any]:
    count = _gradients_of(reference)

    def reference_backward(dy: Any, cache: Any, out: Any, residual: Any) -> Any:
        check_reference_cache(op, home.Cache, cache)
        like = getattr(cache, "like", None)
        if like is not None:
            dy = as_gradient(op, dy, like, cache.library)
        if out is not None:
            check_out(op, out, count)
            kernel = kernel_of(op)
            overwrites = kernel is not None and kernel.overwrites_cache
            check_apart(op, out, tuple(cache), (dy, residual), overwrites)
        try:
            gradients = translated(reference)(dy, cache)
        except Exception as error:
            if like is not None or isinstance(error, HandgradError | MemoryError):
                raise
            raise ArgumentError(
                f"{op}: the fields of the cache and dy do not fit together; "
                f"allowed: a cache that {op}.forward returned, and dy like y"
            ) from error
        return written(added_to_first(residual, gradients), out)

    def backward(dy: Any, cache: Any, out: Any = None, residual: Any = None) -> Any:
        if type(cache) is not KernelCache:
            return reference_backward(dy, cache, out, residual)
        kernel, kept, like, sealed = cache
        if not kernel.capturable:
            kernels.invalidate_capture(_NOT_CAPTURABLE)
        if kernel.op != op or seal_of(kept) != sealed:
            check_kernel_cache(op, cache)
        if not _is_like(dy, like, kernel.layout):
            dy = readable(as_gradient(op, dy, like, "numpy"), kernel.layout)
        if out is not None:
            check_out(op, out, count)
            check_apart(op, out, tuple(kept), (dy, residual), kernel.overwrites_cache)
        try:
            if residual is None:
                return kernel.backward(dy, kept, out=out)
            if kernel.adds_residual_backward:
                return kernel.backward(dy, kept, out=out, residual=residual)
            gradients = kernel.backward(dy, kept, out=out)
        except IndexError as error:  # kernels look at indices again before they reach memory
            raise ArgumentError(
                f"{op}: the cache was changed since forward: {error}; allowed: the cache as "
                f"{op}.forward returned it"
            ) from error
        return written(added_to_first(residual, gradients), out)

    return backward


def part_of_backward(reference: Function) -> Function:
    """Mark a `backward_...` that stands in the reference only: it also takes a kernel's cache."""
    op = reference.__module__.rpartition(".")[2]
    own = sys.modules[reference.__module__].Cache

    @functools.wraps(reference)
    def backward_part(doutputs: Any, cache: Any, *rest: Any) -> Any:
        if type(cache) is KernelCache:
            check_kernel_cache(op, cache)
            cache = cache.kept.as_reference()
        kernels.invalidate_capture(_REFERENCE)
        check_reference_cache(op, own, cache)
        return translated(reference)(doutputs, cache, *rest)

    return backward_part  # type: ignore[return-value]
