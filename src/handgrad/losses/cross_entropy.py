"""CrossEntropy: the softmax and the negative logarithm of the right class in one."""

from __future__ import annotations

import math

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.losses.base import Cache, Loss
from handgrad.ops import cross_entropy


class CrossEntropy(Loss):
    """`ops.cross_entropy` on class scores (N, C, …) against class numbers or probabilities.

    class_axis: 1, or −1 for scores (N, …, C) with the classes last, as models of sequences give
    them; their targets are class numbers (N, …), or probabilities (N, …, C).
    """

    op = cross_entropy
    capturable = True

    def __init__(
        self,
        *,
        weight: Array | None = None,
        label_smoothing: float = 0.0,
        ignore_index: int = -100,
        reduction: str = "mean",
        class_axis: int = 1,
    ) -> None:
        if class_axis not in (1, -1):
            raise ArgumentError(f"CrossEntropy: class_axis is {class_axis}; allowed: 1 or -1")
        super().__init__(
            weight=weight,
            label_smoothing=label_smoothing,
            ignore_index=ignore_index,
            reduction=reduction,
        )
        self.class_axis = class_axis

    def forward(self, y: Array, target: Array) -> tuple[Array, Cache]:
        if self.class_axis == 1:
            return super().forward(y, target)
        steps, classes = tuple(y.shape[:-1]), y.shape[-1]
        if tuple(target.shape) not in (steps, tuple(y.shape)):
            raise ShapeError(
                f"CrossEntropy: target has shape {tuple(target.shape)}; allowed: {steps}, or "
                f"{tuple(y.shape)} as the scores"
            )
        xp = array_namespace(y)
        rows = math.prod(steps)
        given = (rows,) if tuple(target.shape) == steps else (rows, classes)
        loss, cache = super().forward(xp.reshape(y, (rows, classes)), xp.reshape(target, given))
        if len(loss.shape) == 1:
            loss = xp.reshape(loss, steps)
        return loss, Cache(cache.op, loss, tuple(y.shape))

    def backward(
        self, cache: Cache, dloss: Array | None = None, *, out: Array | None = None
    ) -> Array:
        self._check_cache(cache)
        if cache.shape is None:
            return super().backward(cache, dloss, out=out)
        if dloss is not None and len(dloss.shape) > 0:
            dloss = array_namespace(dloss).reshape(dloss, (math.prod(dloss.shape),))
        flat = cache._replace(loss=cache.loss.reshape(-1)) if cache.loss.ndim else cache
        if out is not None:
            if not out.flags.c_contiguous:
                raise ArgumentError("CrossEntropy: out is a strided view; allowed: C-contiguous")
            out = out.reshape(-1, out.shape[-1])
        dy = super().backward(flat, dloss, out=out)
        return array_namespace(dy).reshape(dy, cache.shape)
