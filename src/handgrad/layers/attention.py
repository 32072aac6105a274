"""Multi-head attention: projections of queries, keys and values, heads side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Unpack

import numpy as np
from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError
from handgrad.kernels import invalidate_capture
from handgrad.kernels.sums import add
from handgrad.keywords import with_defaults
from handgrad.layers.base import Layer, Shape, backward_residual, forward_residual, merge, part
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.dense import Dense
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lora import LoRADense
from handgrad.layers.normalization import RMSNorm
from handgrad.layers.settings import AttentionSettings
from handgrad.ops import attention, dropout, rotary

PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj", "o_proj")


class KeysValues(NamedTuple):
    """Projected keys and values by head, (N, G, S, size): what decoding keeps of earlier steps."""

    k: Array
    v: Array

    def followed_by(self, later: KeysValues) -> KeysValues:
        """These and then the later ones."""
        k = np.concatenate([self.k, later.k], axis=2)
        return KeysValues(k, np.concatenate([self.v, later.v], axis=2))


class Cache(NamedTuple):
    """The caches of every step; `attention.a` holds the weights, to be looked at as maps."""

    inputs: int
    projections: Mapping[str, Any]
    turned: Mapping[str, Any]
    attention: Any
    post_dropout: Any


def split_heads(x: Array, heads: int) -> Array:
    """(N, T, H·d) to (N, H, T, d): head i has the columns i·d to (i+1)·d − 1."""
    batch, steps, features = x.shape
    return x.reshape(batch, steps, heads, features // heads).transpose(0, 2, 1, 3)


def merge_heads(x: Array) -> Array:
    """(N, H, T, d) to (N, T, H·d): the heads side by side."""
    batch, heads, steps, features = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, steps, heads * features)


class MultiHeadAttention(Layer):
    """y = concat(head_1, …, head_h) W_O + b_O,  head_i = attention(q W_Q,i, k W_K,i, v W_V,i).

    Called with one input it is self-attention, with two the second is key and value (a memory):

        y, cache = layer.forward(x)                      dx, gradients = layer.backward(dy, cache)
        y, cache = layer.forward(x, memory)              (dx, dmemory), gradients = …
        y, cache = layer.forward(query, key, value)      (dquery, dkey, dvalue), gradients = …

    Where an input forks into several projections, its gradient is the sum of theirs.

    The sizes are those of cuDNN's descriptor: `q_size`, `k_size` and `v_size` of the inputs (k and
    v as q unless given), `q_proj_size`, `k_proj_size` and `v_proj_size` of one head (q_size/heads
    unless given, as in PyTorch), `o_proj_size` of y (q_size unless given). A projection size of 0
    means no projection: every head gets the whole input, and y is the heads side by side.
    `kv_heads` heads of keys and values serve heads/kv_heads heads each. `scale` is 1/√(size of a
    key) unless given. `rotary` turns queries and keys by their positions, by the angles that
    `rotary_base` or `rotary_frequencies` give as in `hg.ops.rotary`; before that, `qk_norm` divides
    those of each head by their root mean square (`q_norm`, `k_norm`, with `eps`). `dropout` is of
    the attention weights, `post_dropout` of y; both draw from `rng` in training. `bias` is True,
    False or the names of the projections that have one.

    The descriptor's qoMaxSeqLength, kvMaxSeqLength and maxBatchSize have no counterpart, because
    they only size buffers, which here every call takes as large as its own shapes need, and
    `parameter_bytes` does not depend on them. Nor has maxBeamSize, because the hypotheses of a beam
    are rows of the batch, N = batch · beam.

    Parameters: `q_proj.weight` (heads·q_proj_size, q_size), `q_proj.bias`, the same for `k_proj`,
    `v_proj` and `o_proj`; head i has the i-th block of rows.
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5, with V_i in
    head i; Yeung, The Deep Learning Dump (2023), section 4.3; NVIDIA, cuDNN API reference
    (undated), cudnnSetAttnDescriptor; Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020),
    section 7, with W_O.
    """

    generator_names = ("rng",)
    forward_capturable = True
    adds_residual_forward = True
    adds_residual_backward = True

    def __init__(
        self,
        q_size: InputSize,
        heads: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        **settings: Unpack[AttentionSettings],
    ) -> None:
        chosen = with_defaults("MultiHeadAttention", AttentionSettings, settings)
        kv_heads, k_size, v_size = chosen["kv_heads"], chosen["k_size"], chosen["v_size"]
        self.heads = heads
        self.kv_heads = heads if kv_heads is None else kv_heads
        self._check_heads()
        self.sizes = {
            "query": q_size,
            "key": q_size if k_size is None else k_size,
            "value": q_size if v_size is None else v_size,
        }
        q_asked, k_asked = chosen["q_proj_size"], chosen["k_proj_size"]
        v_asked, out_size = chosen["v_proj_size"], chosen["o_proj_size"]
        q_head = self._head_size("q_proj_size", q_asked, q_size, q_size)
        k_head = self._head_size("k_proj_size", k_asked, self.sizes["key"], q_head * heads)
        v_head = self._head_size("v_proj_size", v_asked, self.sizes["value"], q_size)
        if k_head != q_head:
            raise ArgumentError(
                f"MultiHeadAttention: a head's key has size {k_head}; allowed: {q_head}, "
                "the size of its query"
            )
        self.scale = chosen["scale"]
        self.rotary = chosen["rotary"]
        self.rotary_base = chosen["rotary_base"]
        self.rotary_frequencies = chosen["rotary_frequencies"]
        self.dropout = _rate("dropout", chosen["dropout"])
        self.post_dropout = _rate("post_dropout", chosen["post_dropout"])
        self.rng = rng if self.dropout > 0 or self.post_dropout > 0 else None
        if out_size is None:
            out_size = q_size
        self.out_size = out_size or heads * v_head
        self.head_sizes = (q_head, v_head)
        projections = {
            "q_proj": (q_size, heads * q_head, q_asked),
            "k_proj": (self.sizes["key"], self.kv_heads * k_head, k_asked),
            "v_proj": (self.sizes["value"], self.kv_heads * v_head, v_asked),
            "o_proj": (heads * v_head, out_size, out_size),
        }
        biased = _biased(chosen["bias"])
        self.layers: dict[str, Layer] = {
            name: Dense(size, projected, rng=rng, bias=name in biased, dtype=chosen["dtype"])
            for name, (size, projected, asked) in projections.items()
            if asked != 0
        }
        self.qk_norm = chosen["qk_norm"]
        if self.qk_norm:
            for name in ("q_norm", "k_norm"):
                self.layers[name] = RMSNorm(q_head, eps=chosen["eps"], dtype=chosen["dtype"])

    def _check_heads(self) -> None:
        if self.heads < 1:
            raise ArgumentError(f"MultiHeadAttention: heads is {self.heads}; allowed: 1 or more")
        if self.kv_heads < 1 or self.heads % self.kv_heads != 0:
            raise ArgumentError(
                f"MultiHeadAttention: kv_heads is {self.kv_heads}; "
                f"allowed: a number that divides heads = {self.heads}"
            )

    def _head_size(self, name: str, asked: int | None, size: int, shared: int) -> int:
        """The size of one head: as asked, of the whole input for 0, else a share of `shared`."""
        if asked is None:
            if shared % self.heads != 0:
                raise ArgumentError(
                    f"MultiHeadAttention: heads is {self.heads}, which does not divide {shared}; "
                    f"allowed: a number that does, or {name}"
                )
            return shared // self.heads
        if asked < 0:
            raise ArgumentError(f"MultiHeadAttention: {name} is {asked}; allowed: 0 or more")
        return asked or size

    @in_own_type
    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        *,
        mask: Array | None = None,
        lengths: Array | None = None,
        causal: bool = False,
        training: bool = False,
        residual: Array | None = None,
    ) -> tuple[Array, Cache]:
        """y (N, T, out) of a query (N, T, q_size), a key (N, S, k_size), a value (N, S, v_size).

        `mask` (broadcasting to (N, heads, T, S), True where a query may look), `lengths` (N,) of
        the keys and `causal` are those of `hg.ops.attention`. Raises ArgumentError for a value
        without key, ShapeError for what does not fit.
        """
        if key is None and value is not None:
            raise ArgumentError(
                "MultiHeadAttention: value is given without key; allowed: query, query and key, "
                "or all three"
            )
        inputs = 1 + (key is not None) + (value is not None)
        key = query if key is None else key
        value = key if value is None else value
        projections: dict[str, Any] = {}
        turned: dict[str, Any] = {}
        q, projections["q_proj"] = self._heads("query", query, self.heads)
        k, projections["k_proj"] = self._heads("key", key, self.kv_heads)
        v, projections["v_proj"] = self._heads("value", value, self.kv_heads)
        q, turned["q"] = self._turned("q", q)
        k, turned["k"] = self._turned("k", k)
        o, attended = attention.forward(
            q,
            k,
            v,
            mask=mask,
            lengths=lengths,
            causal=causal,
            scale=self.scale,
            dropout_p=self.dropout if training else 0.0,
            rng=self.rng,
        )
        y = merge_heads(o)
        if "o_proj" in self.layers:
            drops = training and self.post_dropout > 0
            residual_here, residual = (None, residual) if drops else (residual, None)
            y, projections["o_proj"] = forward_residual(self.layers["o_proj"], residual_here, y)
        y, post = dropout.forward(  # type: ignore[call-arg]
            y, self.post_dropout, self.rng, training=training, residual=residual
        )
        return y, Cache(inputs, projections, turned, attended, post)

    def backward(
        self,
        dy: Array,
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
        residual: Array | None = None,
    ) -> tuple[Any, Mapping[str, Array]]:
        found: dict[str, Mapping[str, Array]] = {}
        names = ("q_proj", "k_proj", "v_proj")
        below = input_gradient or any(
            layer.is_trained for name, layer in self.layers.items() if name != "o_proj"
        )
        do = dropout.backward(dy, cache.post_dropout)
        if "o_proj" in self.layers:
            do, found["o_proj"] = self.layers["o_proj"].backward(
                do,
                cache.projections["o_proj"],
                gradients=part(gradients, "o_proj"),
                input_gradient=below,
            )
        if not below:
            return None, merge(found) if gradients is None else gradients
        dq, dk, dv, _ = attention.backward(split_heads(do, self.heads), cache.attention)
        dq = self._turned_back("q", dq, cache, found, gradients)
        dk = self._turned_back("k", dk, cache, found, gradients)
        # Key and value may be inputs of their own or not; then their gradients add to another's.
        dinputs: list[Any] = [residual, None, None]
        owners = {1: (0, 0, 0), 2: (0, 1, 1), 3: (0, 1, 2)}[cache.inputs]
        for name, i, dheads in zip(names, owners, (dq, dk, dv), strict=True):
            if name in self.layers:
                dinputs[i], found[name] = backward_residual(
                    self.layers[name],
                    dinputs[i],
                    merge_heads(dheads),
                    cache.projections[name],
                    gradients=part(gradients, name),
                    input_gradient=input_gradient,
                )
            elif input_gradient:
                dinput = array_namespace(dheads).sum(dheads, axis=1)
                dinputs[i] = dinput if dinputs[i] is None else add(dinputs[i], dinput)
        if gradients is None:
            gradients = merge({name: found[name] for name in self.layers})
        if not input_gradient:
            return None, gradients
        return dinputs[0] if cache.inputs == 1 else tuple(dinputs[: cache.inputs]), gradients

    def keys_and_values(
        self, key: Array, value: Array | None = None, *, offset: int = 0
    ) -> KeysValues:
        """The projections of a memory, or of steps that stand at `offset`, to `attend` to."""
        k, _ = self._heads("key", key, self.kv_heads)
        v, _ = self._heads("value", key if value is None else value, self.kv_heads)
        k, _ = self._turned("k", k, offset)
        return KeysValues(k, v)

    def attend(
        self,
        query: Array,
        memory: KeysValues,
        *,
        mask: Array | None = None,
        lengths: Array | None = None,
        causal: bool = False,
        offset: int = 0,
    ) -> Array:
        """y for queries that stand at `offset`, at inference and without a cache: for decoding."""
        q, _ = self._heads("query", query, self.heads)
        q, _ = self._turned("q", q, offset)
        o, _ = attention.forward(
            q,
            *memory,
            mask=mask,
            lengths=lengths,
            causal=causal,
            offset=offset,
            scale=self.scale,
        )
        y = merge_heads(o)
        return self.layers["o_proj"].forward(y)[0] if "o_proj" in self.layers else y

    def _turned(self, name: str, x: Array, offset: int = 0) -> tuple[Array, Any]:
        """Queries or keys by head, normalised and turned where that is wanted."""
        norm, turn = None, None
        if self.qk_norm:
            x, norm = self.layers[f"{name}_norm"].forward(x)
        if self.rotary:
            x, turn = rotary.forward(
                x, offset=offset, base=self.rotary_base, frequencies=self.rotary_frequencies
            )
        return x, (norm, turn)

    def _turned_back(
        self,
        name: str,
        dx: Array,
        cache: Cache,
        found: dict[str, Mapping[str, Array]],
        gradients: Mapping[str, Array] | None,
    ) -> Any:
        """The gradient before `_turned`; that of the norm is put into `found`."""
        norm, turn = cache.turned[name]
        if self.rotary:
            dx = rotary.backward(dx, turn)
        if not self.qk_norm:
            return dx
        own = f"{name}_norm"
        dx, found[own] = self.layers[own].backward(dx, norm, gradients=part(gradients, own))
        return dx

    def _heads(self, what: str, x: Array, heads: int) -> tuple[Array, Any]:
        """An input by head, (N, heads, T, size), and the cache of its projection."""
        if len(x.shape) != 3 or x.shape[2] != self.sizes[what]:
            raise ShapeError(
                f"MultiHeadAttention: {what} has shape {tuple(x.shape)}; "
                f"allowed: (N, T, {self.sizes[what]})"
            )
        name = f"{what[0]}_proj"
        if name not in self.layers:
            invalidate_capture("an input was repeated for every head")
            whole = (x.shape[0], heads, *x.shape[1:])
            xp = array_namespace(x)
            return xp.broadcast_to(xp.expand_dims(x, axis=1), whole), None
        projected, cache = self.layers[name].forward(x)
        return split_heads(projected, heads), cache

    def output_shape(self, input_shape: Shape) -> Shape:
        if len(input_shape) != 2 or input_shape[1] != self.sizes["query"]:
            raise ShapeError(
                f"MultiHeadAttention: an example has shape {input_shape}; "
                f"allowed: (T, {self.sizes['query']})"
            )
        return (input_shape[0], self.out_size)

    def flops(self, input_shape: Shape, *, keys: int | None = None) -> int:
        """As many keys as queries unless given; the softmax counts 5 for every weight."""
        queries, _ = self.output_shape(input_shape)
        keys = queries if keys is None else keys
        projections = sum(self._projection_flops(queries, keys).values())
        pairs = self.heads * queries * keys
        norms = 4 * (self.heads * queries + self.kv_heads * keys) * self.head_sizes[0]
        normalised = norms if self.qk_norm else 0
        return projections + normalised + pairs * (2 * sum(self.head_sizes) + 5)

    def input_flops(self, input_shape: Shape) -> int:
        """Those of the projections of an input that is query, key and value."""
        found = self._projection_flops(input_shape[0], input_shape[0])
        return sum(flops for name, flops in found.items() if name != "o_proj")

    def _projection_flops(self, queries: int, keys: int) -> dict[str, int]:
        steps = {"k_proj": keys, "v_proj": keys}
        return {
            name: layer.flops((steps.get(name, queries), layer.in_features))
            for name, layer in self.layers.items()
            if isinstance(layer, Dense | LoRADense)
        }


def _biased(bias: bool | tuple[str, ...]) -> tuple[str, ...]:
    """The names of the projections that have a bias."""
    if isinstance(bias, bool):
        return PROJECTIONS if bias else ()
    unknown = [name for name in bias if name not in PROJECTIONS]
    if unknown:
        raise ArgumentError(
            f"MultiHeadAttention: bias names {unknown[0]!r}; allowed: {', '.join(PROJECTIONS)}"
        )
    return tuple(bias)


def _rate(name: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise ArgumentError(f"MultiHeadAttention: {name} is {p}; allowed: 0 to 1")
    return p
