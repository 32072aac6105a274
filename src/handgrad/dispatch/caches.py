"""Caches as the dispatch hands them out: they know their op, and notice when they were changed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad import kernels
from handgrad.dispatch.signature import library, shown
from handgrad.errors import ArgumentError

#: `seal(outputs, kept)`: a number that tells whether `kept` was changed; outputs whose memory is
#: also in `kept` become read-only. `seal_of(kept)` gives the number alone.
seal: Final[Any] = getattr(kernels.native, "seal", None)
_seal_of: Final[Any] = getattr(kernels.native, "seal_of", None)


class Kernel(NamedTuple):
    """An op's module of kernels, and what every call has to know of it, looked up once.

    takes_views: it says `STRIDED = True`, and reads any view whose last axis is in one piece.
    """

    stem: str
    module: ModuleType
    takes_views: bool
    forward_adds: bool
    backward_adds: bool


@functools.cache
def kernel_of(stem: str) -> Kernel | None:
    """The kernel of op `stem`; None where there is none or no native code."""
    if not kernels.has(stem):
        return None
    module = import_module(f"handgrad.kernels.{stem}")
    views = getattr(module, "STRIDED", False)
    return Kernel(stem, module, views, takes_plus(module.forward), takes_plus(module.backward))


@functools.cache
def takes_plus(function: Callable[..., Any]) -> bool:
    """Whether it adds `plus` as it writes y, or dx."""
    return "plus" in inspect.signature(function).parameters


def likeness(y: Any) -> Any:
    """The shape and type that the gradient of an output must have; a list of these for several."""
    if type(y) is tuple:
        return [likeness(output) for output in y]
    return y.shape, y.dtype


class KernelCache(NamedTuple):
    """What a kernel kept for its backward, what that one's dy must be like, and the seal on it.

    The fields of the kernel's own cache can be read from it. It can be copied and pickled.
    """

    kernel: Kernel
    kept: Any
    like: Any
    seal: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kept, name)

    def __repr__(self) -> str:
        return f"{self.kernel.stem}.{self.kept!r}"

    def __reduce__(self) -> Any:
        return _kernel_cache, (self.kernel.stem, self.kept, self.like)


def _kernel_cache(stem: str, kept: Any, like: Any) -> KernelCache:
    """A cache that was copied or pickled, sealed where its arrays lie now."""
    kernel = kernel_of(stem)
    if kernel is None:
        raise ArgumentError(
            f"{stem}: the cache is that of a kernel; allowed where no kernels are compiled: caches "
            f"of the reference"
        )
    # A copy lays axes out as it likes; any kernel reads what is in C order.
    kept = kept._make(_in_c_order(value) for value in kept)
    return KernelCache(kernel, kept, like, _seal_of(kept))


def _in_c_order(value: Any) -> Any:
    return np.require(value, requirements="C") if type(value) is np.ndarray else value


class _Reference(tuple[Any, ...]):
    """What a cache of a reference has beside its fields: its op, y's library and likeness."""

    stem: str
    library: str = "numpy"
    like: Any = None
    seal: int | None = None

    def _replace(self, **fields: Any) -> Any:
        """With other fields under the old seal: no longer as forward left it."""
        changed = super()._replace(**fields)  # type: ignore[misc]
        changed.__dict__.update(self.__dict__)
        return changed

    def __reduce__(self) -> Any:
        fields: tuple[Any, ...] = tuple(self)
        return _reference_cache, (self.stem, fields, self.library, self.like)


@functools.cache
def _class_of(stem: str) -> Any:
    """The op's own Cache, with room for what the dispatch has to know."""
    own = import_module(f"handgrad.ops.{stem}").Cache
    members = {"stem": stem, "__doc__": own.__doc__, "__module__": own.__module__}
    return type("Cache", (_Reference, own), members)


def _reference_cache(stem: str, fields: tuple[Any, ...], of: str, like: Any) -> Any:
    cache = _class_of(stem)._make(fields)
    cache.library, cache.like = of, like
    cache.seal = None if _seal_of is None else _seal_of(tuple(cache))
    return cache


def reference_cache(stem: str, cache: Any, y: Any) -> Any:
    """The cache of a reference as it is handed out; outputs that it shares become read-only."""
    first = y
    while type(first) is tuple:
        first = first[0]
    sealed = _reference_cache(stem, tuple(cache), library(first), likeness(y))
    for output in _arrays(y):
        if any(np.may_share_memory(output, kept) for kept in _arrays(tuple(cache))):
            output.flags.writeable = False
    return sealed


def _arrays(nested: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of NumPy in nested tuples."""
    if isinstance(nested, tuple):
        return [array for each in nested for array in _arrays(each)]
    return [nested] if isinstance(nested, np.ndarray) else []


def check_kernel_cache(stem: str, cache: KernelCache) -> None:
    """Raise ArgumentError unless the cache is of this op, and as its forward left it."""
    if cache.kernel.stem != stem:
        raise ArgumentError(
            f"{stem}: the cache is that of {cache.kernel.stem}; allowed: one that {stem}.forward "
            f"returned"
        )
    if _seal_of(cache.kept) != cache.seal:
        raise ArgumentError(_changed(stem))


def _changed(stem: str) -> str:
    return (
        f"{stem}: the cache was changed since forward: other arrays, or arrays of another shape; "
        f"allowed: the cache as {stem}.forward returned it"
    )


def check_reference_cache(stem: str, own: type[Any], cache: Any) -> None:
    """Raise ArgumentError unless it is of the op's own class, and as forward left it.

    A cache that was put together by hand, or by what takes tuples apart, as JAX does, has no seal.
    """
    if not isinstance(cache, own):
        found = f"that of {cache.stem}" if isinstance(cache, _Reference) else shown(cache)
        raise ArgumentError(
            f"{stem}: the cache is {found}; allowed: one that {stem}.forward returned"
        )
    if not isinstance(cache, _Reference) or cache.seal is None:
        return
    if _seal_of(tuple(cache)) != cache.seal:
        raise ArgumentError(_changed(stem))
