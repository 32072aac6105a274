"""The base of losses: the last node of a network, with a scalar value and its gradient."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from handgrad.arrays import Array, is_numpy
from handgrad.calls import Explained
from handgrad.conversion import converted
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.printing import call_text, changed_settings


class Cache(NamedTuple):
    """The op's cache, and the loss itself, whose shape and type dL/dL = 1 takes.

    shape: of y, where the loss gave it to the op in another.
    """

    op: Any
    loss: Array
    shape: tuple[int, ...] | None = None


@functools.cache
def _one(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    one = np.ones((), dtype=dtype)
    one.flags.writeable = False
    return one


@functools.cache
def _takes_integers(op: ModuleType) -> bool:
    """Return whether the target of an op may be integers."""
    _, target, *_ = inspect.signature(op.forward).parameters.values()
    return "Int" in str(target.annotation)


def ones_like(loss: Array) -> Array:
    """dL/dL for a loss of this shape and type; not to be written to."""
    if is_numpy(loss):
        return _one(loss.dtype) if loss.ndim == 0 else np.ones_like(loss)
    return array_namespace(loss).ones_like(loss)


class Loss(metaclass=Explained):
    """L(y, target) by an op of the same name; `options` are that op's keyword arguments.

    The op's `validate` checks them with every call.

    `capturable` is declared as by a layer, see `handgrad.layers.Layer`: a derived class is not,
    unless it says so itself.
    """

    op: ModuleType
    capturable: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.capturable = vars(cls).get("capturable", False)

    def __init__(self, **options: object) -> None:
        self.options: dict[str, Any] = options

    def __repr__(self) -> str:
        settings = {**vars(self), **self.options}
        return call_text(type(self).__name__, (), changed_settings(self, settings))

    def _check_cache(self, cache: Any) -> None:
        if type(cache) is not Cache:
            raise ArgumentError(
                f"{type(self).__name__}: the cache is {shown(cache)}; allowed: the one that "
                "forward returned; write value, cache = loss.forward(y, target)"
            )

    def _settled(self, y: Any, target: NDArray[Any]) -> NDArray[Any]:
        """The target as it is where it is class numbers, else in the type of y."""
        if type(y) is not np.ndarray:
            return target
        if y.dtype.kind in "iu" and target.dtype.kind == "f":
            raise ArgumentError(
                f"{type(self).__name__}: y is {shown(y)} and target {shown(target)}; allowed: "
                "the output of the model first; write loss.forward(y, target)"
            )
        if _takes_integers(self.op):
            converts = target.dtype.kind == "f" and target.shape == y.shape
        else:
            converts = target.dtype.kind in "fiub"
        if y.dtype.kind != "f" or not converts:
            return target
        return converted(self, "target", target, y.dtype, "y")

    def __call__(self, y: Array, target: Array) -> Array:
        """The loss alone."""
        return self.forward(y, target)[0]

    def forward(self, y: Array, target: Array) -> tuple[Array, Cache]:
        """The loss and what backward needs.

        A target of numbers is converted to the type of y, with a HandgradWarning once for each
        type; class numbers stay integers.
        """
        if type(target) is np.ndarray and target.dtype is not getattr(y, "dtype", None):
            target = self._settled(y, target)
        loss, cache = self.op.forward(y, target, **self.options)
        return loss, Cache(cache, loss)

    def backward(
        self, cache: Cache, dloss: Array | None = None, *, out: Array | None = None
    ) -> Array:
        """dy, for an incoming gradient `dloss` of the loss's shape; 1 everywhere if not given.

        `out` is where dy is written. That may be y itself, where nobody else needs it any more:
        then y is gone, and the cache with it.
        """
        self._check_cache(cache)
        if dloss is None:
            dloss = ones_like(cache.loss)
        return self.op.backward(dloss, cache.op, out=None if out is None else (out,))
