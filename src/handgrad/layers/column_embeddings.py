"""ColumnEmbeddings: a learned vector for each level of some columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.initializers import Initializer
from handgrad.layers.base import Layer, Row, Shape, merge, part
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.embedding import Embedding
from handgrad.layers.inputs import in_own_type

#: Beside columns of deviation 1 the vectors are small at first, so that a rare level counts little.
_SMALL: Final = partial(initializers.normal, std=0.1)


class Cache(NamedTuple):
    """The caches of the embeddings, and the shape of x."""

    embeddings: tuple[Any, ...]
    shape: Shape


class ColumnEmbeddings(Layer):
    """x (N, D), of which some `columns` hold numbers of levels, with a vector for each of these.

    y (N, D − K + Σ features) has the other columns as they are, and behind them for each of the K
    columns the row of its `Embedding` (levels, features). The gradient of such a column is 0.

    Raises ArgumentError for columns that do not rise from 0 or have no levels and features each,
    and for a number that is no level; ShapeError for an x that does not have the columns.
    Source: Guo, Berkhahn, Entity embeddings of categorical variables (2016), section 3.
    """

    takes_tokens = False

    def __init__(
        self,
        columns: Sequence[int],
        levels: Sequence[int],
        features: Sequence[int],
        *,
        rng: np.random.Generator = FROM_SEED,
        initializer: Initializer = _SMALL,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.columns = tuple(columns)
        rise = (-1, *self.columns)
        if not self.columns or any(b <= a for a, b in pairwise(rise)):
            raise ArgumentError(
                f"ColumnEmbeddings: columns are {self.columns}; allowed: one or more, which rise "
                "from 0 or more"
            )
        if not len(self.columns) == len(levels) == len(features):
            raise ArgumentError(
                f"ColumnEmbeddings: there are {len(levels)} levels and {len(features)} features; "
                f"allowed: {len(self.columns)} of each, one for each column"
            )
        self.layers = {
            str(column): Embedding(count, width, rng=rng, initializer=initializer, dtype=dtype)
            for column, count, width in zip(self.columns, levels, features, strict=True)
        }

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Cache]:
        self.output_shape(tuple(x.shape[1:]))
        xp = array_namespace(x)
        parts, caches = [x[:, start:stop] for start, stop in self._others(x.shape[1])], []
        for column, layer in zip(self.columns, self.layers.values(), strict=True):
            y, cache = layer.forward(xp.astype(x[:, column], xp.int64), training=training)
            parts.append(y)
            caches.append(cache)
        return xp.concat(parts, axis=1), Cache(tuple(caches), tuple(x.shape))

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        xp = array_namespace(dy)
        rest = cache.shape[1] - len(self.columns)
        found, start = {}, rest
        for (name, layer), kept in zip(self.layers.items(), cache.embeddings, strict=True):
            stop = start + self._width(layer)
            _, found[name] = layer.backward(
                xp.asarray(dy[:, start:stop], copy=True), kept, gradients=part(gradients, name)
            )
            start = stop
        dx = self._scattered(dy[:, :rest], cache.shape) if input_gradient else None
        return dx, merge(found) if gradients is None else gradients

    def _scattered(self, dothers: Array, shape: Shape) -> Array:
        """dx: the gradients of the other columns in their places, 0 between them."""
        xp, pieces, taken, at = array_namespace(dothers), [], 0, 0
        for start, stop in self._others(shape[1]):
            pieces += [xp.zeros_like(dothers[:, :1])] * (start - at)
            pieces.append(dothers[:, taken : taken + stop - start])
            taken, at = taken + stop - start, stop
        pieces += [xp.zeros((shape[0], shape[1] - at), dtype=dothers.dtype)]
        return xp.concat(pieces, axis=1)

    def _others(self, width: int) -> list[tuple[int, int]]:
        """The runs of columns that are numbers already."""
        ends = (-1, *self.columns, width)
        return [(a + 1, b) for a, b in pairwise(ends) if a + 1 < b]

    @staticmethod
    def _width(layer: Layer) -> int:
        assert isinstance(layer, Embedding)
        return layer.features

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 1 or input_shape[0] <= self.columns[-1]:
            raise ShapeError(
                f"ColumnEmbeddings: an example has shape {input_shape}; allowed: (D,) with D of "
                f"{self.columns[-1] + 1} or more, because columns are {self.columns}"
            )
        widths = sum(map(self._width, self.layers.values()))
        return (input_shape[0] - len(self.columns) + widths,)

    def flops(self, input_shape: Shape) -> int:
        return 0

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        count = sum(array.size for array in self.parameters.values())
        return [Row(name, "ColumnEmbeddings", self.output_shape(input_shape), count, 0)]
