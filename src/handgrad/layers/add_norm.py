"""Add & Norm: a skip connection around a layer, and layer normalisation before it or after.

In y = x + f(LN(x)) and y = LN(x + f(x)), x goes on beside f because dy then is one term of its
gradient, whatever f does to the other. With norm="pre" it reaches all earlier layers whole; with
norm="post" it passes the normalisation of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from handgrad.arrays import Array
from handgrad.kernels.sums import add
from handgrad.layers.base import (
    InputGradients,
    Layer,
    Row,
    Shape,
    backward_residual,
    forward_residual,
    merge,
    part,
)
from handgrad.layers.construction import InputSize, known
from handgrad.layers.inputs import in_own_type
from handgrad.layers.normalization import LayerNorm, RMSNorm
from handgrad.ops.arguments import check_choice

NORMS: Final = ("pre", "post")
NORMALIZATIONS: Final = ("layer_norm", "rms_norm")


def normalization_layer(
    what: str, normalization: str, features: InputSize, *, eps: float, bias: bool, dtype: DTypeLike
) -> LayerNorm | RMSNorm:
    """LayerNorm, or RMSNorm, which has no bias. Raises ArgumentError for another name."""
    check_choice(what, "normalization", normalization, NORMALIZATIONS)
    if normalization == "rms_norm":
        return RMSNorm(features, eps=eps, dtype=dtype)
    return LayerNorm(features, eps=eps, bias=bias, dtype=dtype)


class Cache(NamedTuple):
    """The caches of the two layers."""

    norm: Any
    inner: Any


class AddNorm(Layer):
    """y = x + f(LN(x)) with norm="pre", y = LN(x + f(x)) with norm="post".

    LN is a LayerNorm or, with normalization="rms_norm", an RMSNorm; `eps` and `bias` are its own. x
    forks, so its gradient is the sum over both ways. Further inputs and settings of forward, such
    as a memory or masks, go to the inner layer f as they are; the gradients of further inputs come
    back beside dx.
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5, for post;
    Gulino, Neural Network Simplified Mathematics (2025), transformer block, for pre;
    He et al., Deep residual learning for image recognition (2016), for the skip connection.
    """

    forward_capturable = True

    def __init__(
        self,
        inner: Layer,
        features: InputSize,
        *,
        norm: str = "pre",
        normalization: str = "layer_norm",
        eps: float = 1e-5,
        bias: bool = True,
        dtype: DTypeLike = np.float32,
    ) -> None:
        features = known(features)
        check_choice("AddNorm", "norm", norm, NORMS)
        self.norm_position = norm
        self.norm = normalization_layer(
            "AddNorm", normalization, features, eps=eps, bias=bias, dtype=dtype
        )
        self.inner = inner
        self.layers = {"norm": self.norm, "inner": inner}

    @in_own_type
    def forward(
        self, x: Array, *others: Array, training: bool = False, **settings: object
    ) -> tuple[Array, Cache]:
        z, norm = self.before(x)
        y, inner = forward_residual(self.inner, x, z, *others, training=training, **settings)
        if self.norm_position == "post":
            y, norm = self.norm.forward(y)
        return y, Cache(norm, inner)

    def before(self, x: Array) -> tuple[Array, object]:
        """The input of the inner layer for x, and the cache of the norm if it stands there."""
        return self.norm.forward(x) if self.norm_position == "pre" else (x, None)

    def after(self, x: Array, f: Array) -> Array:
        """y for x and what the inner layer made of it."""
        y = add(x, f)
        return y if self.norm_position == "pre" else self.norm.forward(y)[0]

    def backward(  # type: ignore[override]  # of several inputs a tuple
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[InputGradients, Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {"norm": {}, "inner": {}}
        dnormed: Any = dy
        norm_out, inner_out = part(gradients, "norm"), part(gradients, "inner")
        pre = self.norm_position == "pre"
        below = input_gradient or (pre and self.norm.is_trained)
        if not pre:
            dnormed, found["norm"] = self.norm.backward(dy, cache.norm, gradients=norm_out)
        dskip = dnormed if input_gradient else None
        dinputs, found["inner"] = backward_residual(
            self.inner,
            None if pre else dskip,
            dnormed,
            cache.inner,
            gradients=inner_out,
            input_gradient=below,
        )
        dx, *dothers = dinputs if isinstance(dinputs, tuple) else (dinputs,)
        if pre and below:
            dx, found["norm"] = backward_residual(
                self.norm,
                dskip,
                dx,
                cache.norm,
                gradients=norm_out,
                input_gradient=input_gradient,
            )
        if gradients is None:
            gradients = merge(found)
        if not input_gradient:
            return None, gradients
        return (dx, *dothers) if dothers else dx, gradients

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.inner.output_shape(self.norm.output_shape(input_shape))

    def flops(self, input_shape: Shape) -> int:
        return sum(row.flops for row in self.rows(input_shape))

    def input_flops(self, input_shape: Shape) -> int:
        first = self.inner if self.norm_position == "post" else self.norm
        return first.input_flops(input_shape)

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        prefix = f"{name}." if name else ""
        shape = self.output_shape(input_shape)
        rows = [
            row
            for child_name, layer in self.layers.items()
            for row in layer.rows(input_shape, prefix + child_name)
        ]
        return [*rows, Row(name, "AddNorm", shape, 0, int(np.prod(shape)))]
