"""The array type of a running error analysis: float64 values that carry a bound of their errors.

A `Bounded` goes through a function in the place of an array, and keeps beside every value how far
the same value may be off where every step is rounded to a smaller unit. What a step adds stands in
the modules beside.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from handgrad.arrays import Array
from handgrad.checking.rounding.model import (
    Arithmetic,
    Unbounded,
    Uncertain,
    certain,
    entered,
    lifted,
)
from handgrad.checking.rounding.table import RULES

#: Keywords without a say in how values are rounded; of some functions they say what comes out.
_IGNORED: Final = frozenset({"dtype", "device", "copy", "order", "casting", "subok", "optimize"})
_TYPED: Final = frozenset({"astype", "zeros_like", "ones_like", "empty_like", "full_like"})


class Bounded(NDArrayOperatorsMixin):
    """An array of float64 values, and how far they may be off in `arithmetic`.

    It stands in for an array in code written for the array API or for NumPy. Comparisons give plain
    arrays of bool; where an outcome is in doubt, a Bounded of bool, whose error 1 marks the doubt.
    Raises Unbounded where there is no rule, and where a number, an index or a branch is to be made
    of values in doubt.
    """

    __slots__ = ("arithmetic", "error", "value")

    def __init__(self, value: Array, error: Array, arithmetic: Arithmetic) -> None:
        self.value = value
        self.error = error
        self.arithmetic = arithmetic

    def __repr__(self) -> str:
        return f"Bounded({self.value!r}, {self.error!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    @property
    def size(self) -> int:
        return int(self.value.size)

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def T(self) -> Bounded:  # noqa: N802
        return Bounded(self.value.T, self.error.T, self.arithmetic)

    @property
    def mT(self) -> Bounded:  # noqa: N802
        value, error = np.swapaxes(self.value, -1, -2), np.swapaxes(self.error, -1, -2)
        return Bounded(value, error, self.arithmetic)

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        return _namespace(self.arithmetic)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "at" and ufunc is np.add and isinstance(inputs[0], Bounded):
            return _add_at(*inputs)
        if method != "__call__" or "where" in keywords:
            raise Unbounded(f"{ufunc.__name__}.{method}")
        (out,) = keywords.pop("out", (None,))
        result = _apply(ufunc, ufunc.__name__, self.arithmetic, inputs, keywords)
        if out is None:
            return result
        if not isinstance(out, Bounded):
            raise Unbounded(f"{ufunc.__name__} into a plain array")
        out[...] = result
        return out

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return _apply(function, function.__name__, self.arithmetic, args, keywords)

    def __getattr__(self, name: str) -> Any:
        if name not in RULES:
            raise AttributeError(f"a Bounded array has no {name}")
        function = getattr(_namespace(self.arithmetic), name)
        if name in ("reshape", "transpose"):  # as methods they also take the sizes one by one
            return lambda *sizes: function(self, *((sizes,) if len(sizes) > 1 else sizes))
        return functools.partial(function, self)

    def flatten(self) -> Bounded:
        return Bounded(self.value.flatten(), self.error.flatten(), self.arithmetic)

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise Unbounded("the conversion to a plain array")

    def __getitem__(self, key: Any) -> Bounded:
        key = _plain(key)
        return Bounded(np.asarray(self.value[key]), np.asarray(self.error[key]), self.arithmetic)

    def __setitem__(self, key: Any, new: Any) -> None:
        key, new = _plain(key), lifted(_opened(new), self.arithmetic)
        self.value[key] = new.value
        self.error[key] = new.error

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Bounded]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(_plain(self))

    def __float__(self) -> float:
        return float(_plain(self))

    def __int__(self) -> int:
        return int(_plain(self))


class Namespace:
    """The functions of the array API and of NumPy, for arrays of which some are Bounded."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.__name__ = __name__
        self.arithmetic = arithmetic

    def __getattr__(self, name: str) -> Any:
        # Here, because it imports NumPy's tests, which a verdict need not wait for.
        import array_api_compat.numpy as compat

        found = getattr(compat, name, None) or getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return lambda *args, **keywords: _apply(found, name, self.arithmetic, args, keywords)


@functools.cache
def _namespace(arithmetic: Arithmetic) -> Namespace:
    return Namespace(arithmetic)


def _opened(x: Any) -> Any:
    """Every Bounded as the Uncertain of the rules, in sequences too."""
    if isinstance(x, Bounded):
        return Uncertain(x.value, x.error)
    if isinstance(x, (tuple, list)):
        parts = [_opened(part) for part in x]
        return tuple(parts) if isinstance(x, tuple) else parts
    return x


def closed(x: Any, arithmetic: Arithmetic) -> Any:
    """The inverse of `_opened`; floats that a plain function made enter with their rounding."""
    if isinstance(x, list):
        return [closed(part, arithmetic) for part in x]
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        x = entered(x, arithmetic)
    return Bounded(x.value, x.error, arithmetic) if isinstance(x, Uncertain) else x


def _plain(x: Any) -> Any:
    return certain(_opened(x))


def _apply(function: Any, name: str, arithmetic: Arithmetic, args: Any, keywords: Any) -> Any:
    """The function by its rule; where nothing is Bounded, the function itself."""
    opened, named = _opened(args), {key: _opened(keywords[key]) for key in keywords}
    with np.errstate(all="ignore"):
        if not any(_is_uncertain(argument) for argument in (*opened, *named.values())):
            return closed(function(*args, **keywords), arithmetic)
        if name not in RULES:
            raise Unbounded(name)
        if name not in _TYPED:
            named = {key: named[key] for key in named if key not in _IGNORED}
        return closed(RULES[name](function, arithmetic, *opened, **named), arithmetic)


def _is_uncertain(x: Any) -> bool:
    if isinstance(x, Uncertain):
        return True
    return isinstance(x, (tuple, list)) and any(_is_uncertain(part) for part in x)


def _add_at(target: Bounded, index: Any, terms: Any) -> None:
    """numpy.add.at: every element of the target is a sum of itself and the terms that meet it."""
    terms = lifted(_opened(terms), target.arithmetic)
    size, count = np.abs(target.value) + target.error, np.zeros(target.shape)
    np.add.at(size, index, np.abs(terms.value) + terms.error)
    np.add.at(count, index, 1.0)
    np.add.at(target.value, index, terms.value)
    np.add.at(target.error, index, terms.error)
    target.error += count * target.arithmetic.unit * size
