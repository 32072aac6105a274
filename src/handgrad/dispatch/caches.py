"""Caches as the dispatch returns them, bound to their op and sealed against changes."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad import kernels
from handgrad.dispatch.values import library, shown
from handgrad.errors import ArgumentError
from handgrad.kernels.spec import KernelSpec

#: `seal(outputs, kept)`: a number from which a change of `kept` is seen; outputs whose memory is
#: also in `kept` become read-only. `seal_of(kept)` gives the number alone.
seal: Final[Any] = getattr(kernels.native, "seal", None)
seal_of: Final[Any] = getattr(kernels.native, "seal_of", None)


@functools.cache
def kernel_of(op: str) -> KernelSpec | None:
    """The kernel of an op; None where there is none or no native code."""
    if not kernels.has(op):
        return None
    found: KernelSpec
    if kernels.has_calls(op):
        found = import_module(f"handgrad.kernels.{op}").SPEC
    else:
        found = import_module("handgrad.kernels.elementwise").element_wise(op)
    return found


def reference_of(op: str) -> Any:
    """The module of an op, for the few kernels that hand a part of their work back to it."""
    return import_module(f"handgrad.ops.{op}")


def likeness(y: Any) -> Any:
    """The shape and type that the gradient of an output must have; a list of these for several."""
    if type(y) is tuple:
        return [likeness(output) for output in y]
    return y.shape, y.dtype


class KernelCache(NamedTuple):
    """The cache of a kernel, the likeness of its backward's dy, and the seal on it.

    The fields of the kernel's own cache can be read from it. It can be copied and pickled.
    """

    kernel: KernelSpec
    kept: Any
    like: Any
    seal: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kept, name)

    def __repr__(self) -> str:
        return f"{self.kernel.op}.{self.kept!r}"

    def __reduce__(self) -> Any:
        return _kernel_cache, (self.kernel.op, self.kept, self.like)


def _kernel_cache(op: str, kept: Any, like: Any) -> KernelCache:
    """A cache that was copied or pickled, sealed where its arrays lie now."""
    kernel = kernel_of(op)
    if kernel is None:
        raise ArgumentError(
            f"{op}: the cache is that of a kernel; allowed where no kernels are compiled: caches "
            f"of the reference"
        )
    # A copy lays axes out as it likes; any kernel reads what is in C order.
    kept = kept._make(_in_c_order(value) for value in kept)
    return KernelCache(kernel, kept, like, seal_of(kept))


def _in_c_order(value: Any) -> Any:
    return np.require(value, requirements="C") if type(value) is np.ndarray else value


class _Reference(tuple[Any, ...]):
    """The parts of a reference's cache beside its fields: its op, y's library and likeness."""

    op_name: str
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
        return _reference_cache, (self.op_name, fields, self.library, self.like)


@functools.cache
def _class_of(op: str) -> Any:
    """The op's own Cache, with attributes for its binding."""
    own = reference_of(op).Cache
    members = {"op_name": op, "__doc__": own.__doc__, "__module__": own.__module__}
    return type("Cache", (_Reference, own), members)


def _reference_cache(op: str, fields: tuple[Any, ...], of: str, like: Any) -> Any:
    cache = _class_of(op)._make(fields)
    cache.library, cache.like = of, like
    cache.seal = None if seal_of is None else seal_of(tuple(cache))
    return cache


def reference_cache(op: str, cache: Any, y: Any) -> Any:
    """The cache of a reference as it is handed out; outputs that it shares become read-only."""
    first = y
    while type(first) is tuple:
        first = first[0]
    sealed = _reference_cache(op, tuple(cache), library(first), likeness(y))
    for output in _arrays(y):
        if any(np.may_share_memory(output, kept) for kept in _arrays(tuple(cache))):
            output.flags.writeable = False
    return sealed


def _arrays(nested: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of NumPy in nested tuples."""
    if isinstance(nested, tuple):
        return [array for each in nested for array in _arrays(each)]
    return [nested] if isinstance(nested, np.ndarray) else []


def check_kernel_cache(op: str, cache: KernelCache) -> None:
    """Raise ArgumentError unless the cache is of this op, and as its forward left it."""
    if cache.kernel.op != op:
        raise ArgumentError(
            f"{op}: the cache is that of {cache.kernel.op}; allowed: one that {op}.forward returned"
        )
    _check_seal(op, cache.kept, cache.seal)


def check_reference_cache(op: str, own: type[Any], cache: Any) -> None:
    """Raise ArgumentError unless it is of the op's own class, and as forward left it.

    A cache that was put together by hand, or by what takes tuples apart, as JAX does, has no seal.
    """
    if not isinstance(cache, own):
        found = f"that of {cache.op_name}" if isinstance(cache, _Reference) else shown(cache)
        raise ArgumentError(f"{op}: the cache is {found}; allowed: one that {op}.forward returned")
    if isinstance(cache, _Reference) and cache.seal is not None:
        _check_seal(op, tuple(cache), cache.seal)


def _check_seal(op: str, kept: tuple[Any, ...], seal: int) -> None:
    if seal_of(kept) != seal:
        raise ArgumentError(
            f"{op}: the cache was changed since forward: other arrays, or arrays of another shape; "
            f"allowed: the cache as {op}.forward returned it"
        )
