"""BERT: a transformer encoder that gives every token, or a whole text, a vector."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, TypedDict, Unpack

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.kernels.sums import add
from handgrad.keywords import selected, with_defaults
from handgrad.layers.base import Layer, Row, Shape, merge, part, walk
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.dense import Dense
from handgrad.layers.embedding import Embedding
from handgrad.layers.inputs import in_own_type
from handgrad.layers.normalization import LayerNorm
from handgrad.layers.positions import LearnedPositions
from handgrad.layers.settings import StackSettings
from handgrad.layers.transformer import TransformerEncoder
from handgrad.models.mean_pooling import mean_pool, mean_pool_backward
from handgrad.models.pretrained import Pretrained
from handgrad.ops import dropout
from handgrad.ops.arguments import check_choice

POOLINGS: Final = ("none", "first", "mean")

#: Standard deviation of the first weights.
_STD: Final = 0.02


class Cache(NamedTuple):
    """The caches of the steps, in the order of forward; `attention_maps` reads the weights."""

    tokens: Any
    positions: Any
    types: Any
    norm: Any
    dropout: Any
    blocks: Any
    pooling: Any


class BertSettings(TypedDict, total=False):
    """Settings of Bert, of which those that its blocks have go on to them."""

    #: Rows of S.
    types: Annotated[int, 2]
    activation: Annotated[str, "gelu"]
    #: The form of GELU, "none" or "tanh".
    approximate: Annotated[str, "none"]
    eps: Annotated[float, 1e-12]
    dropout: Annotated[float, 0.0]
    dtype: Annotated[DTypeLike, np.float32]


class Bert(Pretrained):
    """h = blocks(dropout(LN(E[tokens] + P + S[types]))), then the pooling; post-norm blocks.

    - `context`: the longest text; `width`, `heads`, `hidden` (4 · width unless given) and `blocks`
      are the sizes of the transformer, `types` the number of rows of S.
    - `pooling`: "none" gives h (N, T, width); "first" tanh(W h_0 + b) of the first token, BERT's
      own; "mean" the mean of h over the tokens that are there, both (N, width). With `normalize`
      the mean is divided by its length.
    - `approximate` and all else is as in TransformerBlock.

    Weights start as N(0, 0.02²), biases 0.
    Source: Devlin et al., BERT: pre-training of deep bidirectional transformers for language
    understanding (2019); Reimers, Gurevych, Sentence-BERT: sentence embeddings using siamese
    BERT-networks (2019), for the mean.
    """

    generator_names = ("rng",)
    takes_tokens = True
    backward_reads_output = False

    def __init__(
        self,
        vocabulary: int,
        *,
        context: int,
        width: int,
        heads: int,
        blocks: int,
        rng: np.random.Generator = FROM_SEED,
        hidden: int | None = None,
        pooling: str = "none",
        normalize: bool = False,
        **settings: Unpack[BertSettings],
    ) -> None:
        chosen = with_defaults("Bert", BertSettings, settings)
        types, eps, dtype = chosen["types"], chosen["eps"], chosen["dtype"]
        sizes = {"vocabulary": vocabulary, "context": context, "width": width, "types": types}
        for name, value in sizes.items():
            if value < 1:
                raise ArgumentError(f"Bert: {name} is {value}; allowed: 1 or more")
        check_choice("Bert", "pooling", pooling, POOLINGS)
        if normalize and pooling != "mean":
            raise ArgumentError(
                f'Bert: normalize is True with pooling="{pooling}"; allowed: "mean"'
            )
        self.context = context
        self.width = width
        self.pooling = pooling
        self.normalize = normalize
        self.dropout = chosen["dropout"]
        self.rng = rng if self.dropout > 0 else None
        self.tokens = Embedding(vocabulary, width, rng=rng, dtype=dtype)
        self.positions = LearnedPositions(context, width, rng=rng, dtype=dtype)
        self.types = Embedding(types, width, rng=rng, dtype=dtype)
        self.norm = LayerNorm(width, eps=eps, dtype=dtype)
        inner: StackSettings = {**selected(StackSettings, chosen), "norm": "post"}
        self.blocks = TransformerEncoder(
            blocks,
            width,
            heads,
            4 * width if hidden is None else hidden,
            rng=rng,
            **inner,
        )
        self.layers: dict[str, Layer] = {
            "tokens": self.tokens,
            "positions": self.positions,
            "types": self.types,
            "norm": self.norm,
            "blocks": self.blocks,
        }
        self.pooler = None
        if pooling == "first":
            self.pooler = Dense(width, width, rng=rng, activation="tanh", dtype=dtype)
            self.layers["pooler"] = self.pooler
        for _, layer in walk(self):
            if isinstance(layer, Dense | Embedding | LearnedPositions):
                layer.initializer = partial(initializers.normal, std=_STD)
                w = layer.weight
                w[...] = layer.initializer(w.shape, rng, dtype=w.dtype)

    @in_own_type
    def forward(
        self,
        tokens: Array,
        token_types: Array | None = None,
        *,
        mask: Array | None = None,
        lengths: Array | None = None,
        training: bool = False,
    ) -> tuple[Array, Cache]:
        """h (N, T, width) for tokens (N, T), or of each text one vector (N, width).

        `token_types` (N, T) are 0 unless given. Only the first `lengths` (N,) tokens of a text are
        looked at, and of these only those where `mask` (N, T) is True.

        Raises ShapeError for more tokens than `context` and where shapes do not fit, ArgumentError
        for a token or type outside its table.
        """
        self._check(tuple(tokens.shape), 2, "(N, T)")
        xp = array_namespace(tokens)
        if token_types is None:
            token_types = xp.zeros_like(tokens)
        for name, array in (("token_types", token_types), ("mask", mask)):
            if array is not None and tuple(array.shape) != tuple(tokens.shape):
                raise ShapeError(
                    f"Bert: {name} has shape {tuple(array.shape)}; allowed: "
                    f"{tuple(tokens.shape)}, that of tokens"
                )
        x, embedded = self.tokens.forward(tokens)
        x, placed = self.positions.forward(x)
        s, typed = self.types.forward(token_types)
        x, norm = self.norm.forward(add(x, s))
        x, dropped = dropout.forward(x, self.dropout, self.rng, training=training)
        seen = None if mask is None else mask[:, None, None, :]
        y, blocks = self.blocks.forward(x, mask=seen, lengths=lengths, training=training)
        pooling: Any = None
        if self.pooler is not None:
            shape = tuple(y.shape)
            y, inner = self.pooler.forward(y[:, 0, :])
            pooling = (inner, shape)
        elif self.pooling == "mean":
            y, pooling = mean_pool(y, mask=mask, lengths=lengths, normalize=self.normalize)
        return y, Cache(embedded, placed, typed, norm, dropped, blocks, pooling)

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[None, Mapping[str, Array]]:
        """None, because tokens have no gradient, and the gradients of the parameters."""
        found: dict[str, Mapping[str, Array]] = {}
        dh = dy
        if self.pooler is not None:
            inner, shape = cache.pooling
            dfirst, found["pooler"] = self.pooler.backward(
                dy, inner, gradients=part(gradients, "pooler")
            )
            dh = _first_of(dfirst, shape)
        elif self.pooling == "mean":
            dh = mean_pool_backward(dy, cache.pooling)
        embeds = (self.norm, self.types, self.positions, self.tokens)
        below = any(layer.is_trained for layer in embeds)
        dx, found["blocks"] = self.blocks.backward(
            dh, cache.blocks, gradients=part(gradients, "blocks"), input_gradient=below
        )
        if below:
            dx = dropout.backward(dx, cache.dropout)
            dx, found["norm"] = self.norm.backward(
                dx, cache.norm, gradients=part(gradients, "norm")
            )
            for name, layer, kept in (
                ("types", self.types, cache.types),
                ("positions", self.positions, cache.positions),
                ("tokens", self.tokens, cache.tokens),
            ):
                _, found[name] = layer.backward(dx, kept, gradients=part(gradients, name))
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers if name in found})
        return None, gradients

    def attention_maps(self, cache: Cache) -> list[tuple[str, Array]]:
        """Each block's attention weights (N, heads, T, T) by name, such as `blocks.0.attention`."""
        maps = self.blocks.attention_maps(cache.blocks)
        return [(f"blocks.{name}", weights) for name, weights in maps]

    def _check(self, shape: Shape, axes: int, allowed: str) -> None:
        if len(shape) != axes or not 1 <= shape[-1] <= self.context:
            raise ShapeError(
                f"Bert: tokens have shape {shape}; allowed: {allowed} with T from 1 to "
                f"{self.context}, the context"
            )

    def output_shape(self, input_shape: Shape) -> Shape:
        self._check(input_shape, 1, "an example (T,)")
        return (*input_shape, self.width) if self.pooling == "none" else (self.width,)

    def flops(self, input_shape: Shape) -> int:
        """Without the sum of types and the mean, which are little."""
        return sum(row.flops for row in self.rows(input_shape))

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        prefix = f"{name}." if name else ""
        hidden = (*input_shape, self.width)
        self._check(input_shape, 1, "an example (T,)")
        shapes = {"tokens": input_shape, "types": input_shape, "pooler": (self.width,)}
        return [
            row
            for child_name, layer in self.layers.items()
            for row in layer.rows(shapes.get(child_name, hidden), prefix + child_name)
        ]


def _first_of(dfirst: Array, shape: Shape) -> Array:
    """dh (N, T, D) of which only the first step is not 0."""
    xp = array_namespace(dfirst)
    batch, steps, features = shape
    rest = xp.zeros((batch, steps - 1, features), dtype=dfirst.dtype)
    return xp.concat((xp.expand_dims(dfirst, axis=1), rest), axis=1)
