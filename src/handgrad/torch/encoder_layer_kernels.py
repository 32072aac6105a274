"""A whole TransformerEncoderLayer on arrays, forward and backward, by the calls of kernels.

Queries, keys and values come from one product and stay in its memory, every sum with a skip
connection is written by the product or the normalisation before it, and the weights of attention
are never stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.kernels.activation import code_of, keeps_input

if kernels.native is not None:  # without, the bridge refuses every call
    from handgrad.kernels import dense, layer_norm
    from handgrad.kernels.memory import empty, empty_like

_native: Any = kernels.native


class Inputs(NamedTuple):
    """The arguments of the operator, tensors or arrays: x (N, T, E), then PyTorch's parameters.

    `bias` is added to the scores, `mask` is True where a query may look; both broadcast to (N,
    heads, T, T). The masks of dropout follow from `seed`; without one nothing is dropped.
    """

    x: Any
    in_proj_weight: Any
    in_proj_bias: Any
    out_proj_weight: Any
    out_proj_bias: Any
    linear1_weight: Any
    linear1_bias: Any
    linear2_weight: Any
    linear2_bias: Any
    norm1_weight: Any
    norm1_bias: Any
    norm2_weight: Any
    norm2_bias: Any
    bias: Any
    mask: Any
    seed: Any
    heads: int
    activation: str
    approximate: str
    dropout: float
    eps1: float
    eps2: float
    norm_first: bool
    causal: bool
    bf16: bool


class Outputs(NamedTuple):
    """y, and what backward reads; of the last five those that the settings have not are empty.

    `sum1` is x and what attention adds, `normed1` the first norm's output, `second` the input of
    the second norm where that stands last, else its output. `hidden` is what goes into the last
    product, `a` the value before the activation; `statistics` are those of the norms' rows.
    """

    y: Any
    qkv: Any
    o: Any
    log_sums: Any
    sum1: Any
    normed1: Any
    statistics1: Any
    second: Any
    statistics2: Any
    hidden: Any
    a: Any
    keep_weights: Any
    keep1: Any
    keep_hidden: Any
    keep2: Any


class Drawn(NamedTuple):
    """One number for every value that dropout may switch off; None where there is no dropout."""

    weights: Array | None
    after_attention: Array | None
    hidden: Array | None
    after_network: Array | None


def drawn_numbers(given: Inputs) -> Drawn:
    if given.seed is None:
        return Drawn(None, None, None, None)
    rng = np.random.default_rng(int(given.seed))
    batch, steps, features = given.x.shape
    hidden = given.linear1_weight.shape[0]
    shapes = (
        (batch, given.heads, steps, steps),
        (batch, steps, features),
        (batch, steps, hidden),
        (batch, steps, features),
    )
    return Drawn(*(rng.random(dtype=np.float32, out=empty(s, np.float32)) for s in shapes))


def scale_of(p: float) -> float:
    return 1.0 / (1.0 - p) if p < 1.0 else 0.0


def _dropped(
    x: Array, drawn: Array | None, p: float, residual: Array | None = None
) -> tuple[Array, Array]:
    """x after dropout, with the residual added, and the mask; x itself where nothing is drawn."""
    if drawn is None:
        return x, empty(0, np.bool_)
    y, keep = empty_like(x), empty(x.shape, np.bool_)
    _native.dropout_forward(x, drawn, residual, keep, y, p, scale_of(p))
    return y, keep


def _through_dropout(dy: Any, keep: Array, p: float) -> Array:
    if keep.size == 0:
        return dy
    dx = empty_like(dy)
    _native.dropout_backward(dy, keep, dx, scale_of(p))
    return dx


def _norm(x: Array, gamma: Array, beta: Array | None, eps: float) -> tuple[Array, Array]:
    zero = np.zeros_like(gamma) if beta is None else beta
    y, cache = layer_norm.forward(x, gamma, zero, eps=eps)
    return y, cache.statistics


def _heads(qkv: Array, heads: int) -> tuple[Array, Array, Array]:
    """Queries, keys and values (N, heads, T, size) as views of (N, T, 3 E)."""
    batch, steps, width = qkv.shape
    parts = qkv.reshape(batch, steps, 3, heads, width // (3 * heads)).transpose(2, 0, 3, 1, 4)
    return parts[0], parts[1], parts[2]


def _by_head(x: Any, heads: int) -> Array:
    batch, steps, features = x.shape
    return x.reshape(batch, steps, heads, features // heads).transpose(0, 2, 1, 3)


def _pairs(array: Array | None, given: Inputs) -> Array | None:
    """One value for every pair of query and key, without a copy."""
    batch, steps, _ = given.x.shape
    return None if array is None else np.broadcast_to(array, (batch, given.heads, steps, steps))


def _settings(given: Inputs, keep: Array) -> tuple[Any, ...]:
    """The arguments of attention between k, v and y."""
    size = given.x.shape[2] // given.heads
    kept = (keep, scale_of(given.dropout)) if keep.size else (None, 1.0)
    bias, mask = _pairs(given.bias, given), _pairs(given.mask, given)
    return (bias, mask, None, *kept, 1.0 / math.sqrt(size), given.causal, 0)


def _added(
    x: Array, weight: Array, bias: Array | None, residual: Array, drawn: Array | None, p: float
) -> tuple[Array, Array]:
    """The residual plus the product after dropout, and the mask."""
    if drawn is None:
        y, _ = dense.forward(x, weight, bias, residual=residual)
        return y, empty(0, np.bool_)
    y, _ = dense.forward(x, weight, bias)
    return _dropped(y, drawn, p, residual)


def _product(
    x: Array, weight: Array, bias: Array | None, saved: Array | None = None, activation: int = 0
) -> dense.Cache:
    return dense.Cache(x, weight, bias, saved, activation, 0.0)


class _Attended(NamedTuple):
    qkv: Array
    o: Array
    log_sums: Array
    sum1: Array
    keep_weights: Array
    keep1: Array


def _attended(z: Array, residual: Array, given: Inputs, drawn: Drawn) -> _Attended:
    """The residual and what attention adds to it for z."""
    qkv, _ = dense.forward(z, given.in_proj_weight, given.in_proj_bias)
    keep = empty(0, np.bool_)
    if drawn.weights is not None:
        keep = empty(drawn.weights.shape, np.bool_)
        np.greater_equal(drawn.weights, given.dropout, out=keep)
    o = empty_like(z)
    log_sums = empty((z.shape[0], given.heads, z.shape[1]), z.dtype)
    _native.attention_forward(
        *_heads(qkv, given.heads), *_settings(given, keep), _by_head(o, given.heads), log_sums
    )
    weights = (given.out_proj_weight, given.out_proj_bias)
    sum1, keep1 = _added(o, *weights, residual, drawn.after_attention, given.dropout)
    return _Attended(qkv, o, log_sums, sum1, keep, keep1)


def _attended_backward(
    dsum1: Any,
    z: Array,
    residual: Array | None,
    given: Inputs,
    kept: Outputs,
    at: Mapping[str, Any],
    found: dict[str, Array | None],
) -> Any:
    """dz, with the residual added; the gradients of the projections go to `found`."""
    do, found["out_proj_weight"], found["out_proj_bias"] = dense.backward(
        _through_dropout(dsum1, kept.keep1, given.dropout),
        _product(kept.o, given.out_proj_weight, given.out_proj_bias),
        out=(None, at["out_proj_weight"], at["out_proj_bias"]),
    )
    dqkv = empty_like(kept.qkv)
    _native.attention_backward(
        _by_head(do, given.heads),
        *_heads(kept.qkv, given.heads),
        *_settings(given, kept.keep_weights),
        _by_head(kept.o, given.heads),
        kept.log_sums,
        *_heads(dqkv, given.heads),
        None,
    )
    wants_dz = None if given.norm_first or at["x"] is None else SKIP
    dz, found["in_proj_weight"], found["in_proj_bias"] = dense.backward(
        dqkv,
        _product(z, given.in_proj_weight, given.in_proj_bias),
        out=(wants_dz, at["in_proj_weight"], at["in_proj_bias"]),
        residual=residual,
    )
    return dz


class _Network(NamedTuple):
    hidden: Array
    a: Array
    sum2: Array
    keep_hidden: Array
    keep2: Array


def _network(z: Array, residual: Array, given: Inputs, drawn: Drawn) -> _Network:
    """The residual and what the feed-forward network adds to it for z."""
    f, cache = dense.forward(
        z,
        given.linear1_weight,
        given.linear1_bias,
        activation=given.activation,
        approximate=given.approximate,
    )
    a: Any = cache.saved if keeps_input(cache.activation) else empty(0, z.dtype)
    hidden, keep_hidden = _dropped(f, drawn.hidden, given.dropout)
    weights = (given.linear2_weight, given.linear2_bias)
    sum2, keep2 = _added(hidden, *weights, residual, drawn.after_network, given.dropout)
    return _Network(hidden, a, sum2, keep_hidden, keep2)


def _network_backward(
    dsum2: Any,
    z: Array,
    residual: Array | None,
    given: Inputs,
    kept: Outputs,
    at: Mapping[str, Any],
    found: dict[str, Array | None],
) -> Any:
    """dz, with the residual added; the gradients of the two products go to `found`."""
    dhidden, found["linear2_weight"], found["linear2_bias"] = dense.backward(
        _through_dropout(dsum2, kept.keep2, given.dropout),
        _product(kept.hidden, given.linear2_weight, given.linear2_bias),
        out=(None, at["linear2_weight"], at["linear2_bias"]),
    )
    # Only relu is derived from its output, whose sign dropout leaves or zeroes.
    code = code_of(given.activation, given.approximate)
    saved = kept.a if keeps_input(code) else kept.hidden
    dz, found["linear1_weight"], found["linear1_bias"] = dense.backward(
        _through_dropout(dhidden, kept.keep_hidden, given.dropout),
        _product(z, given.linear1_weight, given.linear1_bias, saved, code),
        out=(None, at["linear1_weight"], at["linear1_bias"]),
        residual=residual,
    )
    return dz


def forward(given: Inputs) -> Outputs:
    x, drawn = given.x, drawn_numbers(given)
    norm1 = (given.norm1_weight, given.norm1_bias, given.eps1)
    norm2 = (given.norm2_weight, given.norm2_bias, given.eps2)
    if given.norm_first:
        normed1, statistics1 = _norm(x, *norm1)
        attended = _attended(normed1, x, given, drawn)
        second, statistics2 = _norm(attended.sum1, *norm2)
        network = _network(second, attended.sum1, given, drawn)
        y = network.sum2
    else:
        attended = _attended(x, x, given, drawn)
        normed1, statistics1 = _norm(attended.sum1, *norm1)
        network = _network(normed1, normed1, given, drawn)
        second = network.sum2
        y, statistics2 = _norm(second, *norm2)
    return Outputs(
        y=y,
        qkv=attended.qkv,
        o=attended.o,
        log_sums=attended.log_sums,
        sum1=attended.sum1,
        normed1=normed1,
        statistics1=statistics1,
        second=second,
        statistics2=statistics2,
        hidden=network.hidden,
        a=network.a,
        keep_weights=attended.keep_weights,
        keep1=attended.keep1,
        keep_hidden=network.keep_hidden,
        keep2=network.keep2,
    )


def backward(
    dy: Array, given: Inputs, kept: Outputs, at: Mapping[str, Any]
) -> dict[str, Array | None]:
    """The gradients of the learned inputs by name; `at` has SKIP for those that are not wanted."""
    found: dict[str, Array | None] = {}
    out1 = (at["norm1_weight"], at["norm1_bias"])
    out2 = (None, at["norm2_weight"], at["norm2_bias"])
    if given.norm_first:
        norm1 = layer_norm.Cache(given.x, given.norm1_weight, kept.statistics1)
        norm2 = layer_norm.Cache(kept.sum1, given.norm2_weight, kept.statistics2)
        dsecond = _network_backward(dy, kept.second, None, given, kept, at, found)
        dsum1, *dnorm2 = layer_norm.backward(dsecond, norm2, out=out2, residual=dy)
        dnormed1 = _attended_backward(dsum1, kept.normed1, None, given, kept, at, found)
        dx, *dnorm1 = layer_norm.backward(dnormed1, norm1, out=(at["x"], *out1), residual=dsum1)
    else:
        norm1 = layer_norm.Cache(kept.sum1, given.norm1_weight, kept.statistics1)
        norm2 = layer_norm.Cache(kept.second, given.norm2_weight, kept.statistics2)
        dsum2, *dnorm2 = layer_norm.backward(dy, norm2, out=out2)
        dnormed1 = _network_backward(dsum2, kept.normed1, dsum2, given, kept, at, found)
        dsum1, *dnorm1 = layer_norm.backward(dnormed1, norm1, out=(None, *out1))
        residual = None if at["x"] is SKIP else dsum1
        dx = _attended_backward(dsum1, given.x, residual, given, kept, at, found)
    found["x"] = dx
    found["norm1_weight"], found["norm1_bias"] = dnorm1
    found["norm2_weight"], found["norm2_bias"] = dnorm2
    return found
