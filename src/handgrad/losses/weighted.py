"""Weighted: the losses of the examples added up, each times a weight of its own."""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.errors import ArgumentError, ShapeError
from handgrad.losses.base import Cache, Loss, ones_like
from handgrad.ops import linear


class Weighted(Loss):
    """L = Σᵢ wᵢ lᵢ for weights w of the shape of the losses l, those of `loss` one by one.

    `loss` is one with `reduction="none"`. The weights come with the target, since they belong to
    the batch; w = 1/n everywhere is the mean. They have no gradient.

        loss = Weighted(CrossEntropy(reduction="none"))
        value, cache = loss.forward(scores, target, weight)

    Raises ArgumentError for a loss with another reduction, ShapeError for weights of another shape.
    """

    def __init__(self, loss: Loss) -> None:
        if loss.options.get("reduction") != "none":
            raise ArgumentError(
                f"Weighted: the loss has reduction {loss.options.get('reduction')!r}; "
                "allowed: 'none', with one loss for each weight"
            )
        super().__init__()
        self.loss = loss
        self.capturable = loss.capturable

    def forward(self, y: Array, target: Array, weight: Array | None = None) -> tuple[Array, Cache]:
        losses, inner = self.loss.forward(y, target)
        shape = tuple(losses.shape)
        if weight is None or tuple(weight.shape) != shape:
            found = "missing" if weight is None else f"of shape {tuple(weight.shape)}"
            raise ShapeError(f"Weighted: weight is {found}; allowed: {shape}, as the losses")
        xp, row = array_namespace(losses), (1, math.prod(shape))
        product, kept = linear.forward(xp.reshape(losses, row), xp.reshape(weight, row))
        value = xp.reshape(product, ())
        return value, Cache((inner, kept), value, shape)

    def backward(
        self, cache: Cache, dloss: Array | None = None, *, out: Array | None = None
    ) -> Array:
        inner, kept = cache.op
        xp = array_namespace(cache.loss)
        dloss = xp.reshape(ones_like(cache.loss) if dloss is None else dloss, (1, 1))
        dlosses: Any = linear.backward(  # type: ignore[call-arg]
            dloss, kept, out=(None, SKIP, SKIP)
        )[0]
        dlosses = xp.reshape(dlosses, cache.shape)
        return self.loss.backward(inner, dlosses, out=out)
