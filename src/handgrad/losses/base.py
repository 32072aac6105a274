"""The base of losses: the last node of a network, with a scalar value and its gradient."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from handgrad.arrays import Array


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


class Loss:
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

    def __init__(self, **options: Any) -> None:
        self.options = options

    def forward(self, y: Array, target: Array) -> tuple[Array, Cache]:
        """The loss and what backward needs."""
        loss, cache = self.op.forward(y, target, **self.options)
        return loss, Cache(cache, loss)

    def backward(
        self, cache: Cache, dloss: Array | None = None, *, out: Array | None = None
    ) -> Array:
        """dy, for an incoming gradient `dloss` of the loss's shape; 1 everywhere if not given.

        `out` is where dy is written. That may be y itself, where nobody else needs it any more:
        then y is gone, and the cache with it.
        """
        if dloss is None:
            loss = cache.loss
            if isinstance(loss, (np.ndarray, np.generic)):
                dloss = _one(loss.dtype) if loss.ndim == 0 else np.ones_like(loss)
            else:
                dloss = array_namespace(loss).ones_like(loss)
        return self.op.backward(dloss, cache.op, out=None if out is None else (out,))
