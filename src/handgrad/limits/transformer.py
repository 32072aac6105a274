"""The rules of attention and of the layers that stand around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from handgrad.layers import (
    AddNorm,
    Dense,
    MultiHeadAttention,
    TransformerBlock,
    TransformerEncoder,
)
from handgrad.limits.moments import Moments
from handgrad.limits.program import Build, MomentFactor, Raw, Signal, bias_of, mixed, signal, total
from handgrad.limits.rules import dense, lower, sums
from handgrad.limits.variables import Concat, Variable, parts_of
from handgrad.models import GPT
from handgrad.ops import softmax


@lower.register
def _add_norm(layer: AddNorm, x: Raw | Signal, build: Build) -> Signal:
    return _with_norm(layer, build.read(x, "last"), build, causal=False)


def _with_norm(layer: AddNorm, x: Signal, build: Build, *, causal: bool) -> Signal:
    pre = layer.norm_position == "pre"
    inside = lower(layer.norm, x, build) if pre else x
    with build.child("inner"):
        if isinstance(layer.inner, MultiHeadAttention):
            branch = _attended(layer.inner, inside, build, causal=causal)
        else:
            branch = lower(layer.inner, inside, build)
    y = sums(x, branch, build.name("sum"))
    return y if pre else lower(layer.norm, y, build)


@lower.register
def _block(layer: TransformerBlock, x: Raw | Signal, build: Build) -> Signal:
    if layer.cross:
        raise ArgumentError("limits: TransformerBlock has cross=True; allowed: False")
    y = build.read(x, "last")
    for name, part in layer.layers.items():
        with build.child(name):
            y = _with_norm(part, y, build, causal=layer.causal)
    return y


@lower.register(TransformerEncoder)
@lower.register(GPT)
def _stack(layer: TransformerEncoder | GPT, x: Raw | Signal, build: Build) -> Signal:
    if isinstance(layer, GPT) and layer.head is None:
        raise ArgumentError(
            "limits: GPT has tied=True, so that the head is the transpose of the matrix that the "
            "tokens' vectors come from, and not independent of them; allowed: tied=False"
        )
    for name, part in layer.layers.items():
        with build.child(name):
            x = lower(part, x, build)
    return x  # type: ignore[return-value]


@lower.register
def _attention(layer: MultiHeadAttention, x: Raw | Signal, build: Build) -> Signal:
    return _attended(layer, build.read(x, "last"), build, causal=False)


def _attended(layer: MultiHeadAttention, x: Signal, build: Build, *, causal: bool) -> Signal:
    """Sums of values with the softmax of scores that are means over the entries: numbers."""
    if layer.rotary:
        raise ArgumentError("limits: MultiHeadAttention has rotary=True; allowed: False")
    if layer.qk_norm:
        raise ArgumentError("limits: MultiHeadAttention has qk_norm=True; allowed: False")
    size = layer.head_sizes[0]
    if layer.scale is None:
        raise ArgumentError(
            f"limits: MultiHeadAttention has scale 1/√{size}, with which its scores stay random "
            f"and y is no Gaussian process; allowed: scale = c/{size} with a number c"
        )
    steps = list(x.variables)
    shared = layer.heads // layer.kv_heads
    heads = []
    for number in range(layer.heads):
        q = _projected(layer, "q_proj", number, steps, build)
        k = _projected(layer, "k_proj", number // shared, steps, build)
        v = _projected(layer, "v_proj", number // shared, steps, build)
        weights = MomentFactor(
            _attention_weights(q, k, layer.scale * size, causal, build.is_ragged), "attention"
        )
        name = build.name(f"head {number}")
        heads.append([_mean_of(v, weights, t, name) for t in range(len(steps))])
    y = signal((len(steps),), lambda at: _side_by_side([head[at[0]] for head in heads], at))
    if "o_proj" not in layer.layers:
        return y
    with build.child("o_proj"):
        return dense(_projection(layer, "o_proj"), y, build)


def _projection(layer: MultiHeadAttention, name: str) -> Dense:
    found = layer.layers[name]
    assert isinstance(found, Dense)
    return found


def _projected(
    layer: MultiHeadAttention, name: str, head: int, steps: list[Variable], build: Build
) -> list[Variable]:
    """Queries, keys or values of one head, by rows of the matrix that are its own."""
    if name not in layer.layers:
        return steps
    projection = _projection(layer, name)
    with build.child(name):
        shape = projection.weight.shape
        weight = build.weight(
            projection, "weight", projection.initializer, shape, projection.in_features
        )
        own = build.rows(weight, head)
        made = [build.product(own, h) for h in steps]
        if projection.bias is None:
            return made
        bias = bias_of(build.rows(build.bias(projection), head))
        return [total(g, bias) for g in made]


def _attention_weights(
    q: list[Variable], k: list[Variable], temperature: float, causal: bool, ragged: bool
) -> Callable[[Moments], Array]:
    """a (T, N, S): softmax of E[q k] · temperature over the keys that may be looked at."""

    def weights(alone: Moments) -> Array:
        side = alone.sides[0]
        scores = np.empty((len(q), side.count, len(k)))
        for t, one in enumerate(q):
            for s, other in enumerate(k):
                scores[t, :, s] = temperature * _mean_product(alone, one, other)
        if causal:
            scores = np.where(np.tri(len(q), dtype=bool)[:, None, :], scores, -np.inf)
        if ragged:
            inside = np.arange(len(k)) < side.lengths[:, None]
            scores = np.where(inside, scores, -np.inf)
        found, _ = softmax.forward(scores)
        return np.asarray(found)

    return weights


def _mean_product(alone: Moments, one: Variable, other: Variable) -> Array:
    """The mean of the products over the entries."""
    pairs = zip(parts_of(one), parts_of(other), strict=True)
    return np.asarray(sum(share * alone.second(a, b) for (share, a), (_, b) in pairs))


def _mean_of(values: list[Variable], weights: MomentFactor, t: int, name: str) -> Variable:
    """Σ a_ts v_s."""

    def weight(s: int) -> MomentFactor:
        return MomentFactor(lambda alone: weights(alone)[t, :, s], "attention")

    terms = ((weight(s), value) for s, value in enumerate(values))
    return mixed(*terms, name=name, index=(t,))


def _side_by_side(heads: list[Variable], at: tuple[int, ...]) -> Variable:
    """The heads one after another in one vector."""
    share = 1.0 / len(heads)
    parts = tuple((share * of, part) for head in heads for of, part in parts_of(head))
    return parts[0][1] if len(parts) == 1 else Concat("", parts, index=at)
