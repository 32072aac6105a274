"""Additive attention: a decoder's states look at an encoder's, scored by a small network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ShapeError
from handgrad.ops.arguments import check_length_values, check_lengths, check_size, check_vector
from handgrad.ops.scores import check_pairs, check_states, masked, weights

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Cache(NamedTuple):
    """The inputs, the hidden values u of the score's network and the weights α.

    u is kept for tanh′ = 1 − u²; it is the largest array here, one vector per pair of states.
    """

    s: Array
    h: Array
    weight_s: Array
    weight_h: Array
    v: Array
    u: Array
    alpha: Array


def validate(
    s: Array,
    h: Array,
    weight_s: Array,
    weight_h: Array,
    v: Array,
    *,
    mask: Array | None = None,
    lengths: Array | None = None,
) -> None:
    check_states("additive_attention", s, h)
    for name, weight, states in (("weight_s", weight_s, s), ("weight_h", weight_h, h)):
        if len(weight.shape) != 2 or weight.shape[1] != states.shape[2]:
            raise ShapeError(
                f"additive_attention: {name} has shape {tuple(weight.shape)}; allowed: "
                f"(A, {states.shape[2]}), because {name[-1]} has shape {tuple(states.shape)}"
            )
    check_vector("additive_attention", "v", v, weight_s.shape[0])
    if weight_h.shape[0] != weight_s.shape[0]:
        raise ShapeError(
            f"additive_attention: weight_h has shape {tuple(weight_h.shape)}; allowed: "
            f"{(weight_s.shape[0], weight_h.shape[1])}, because weight_s has shape "
            f"{tuple(weight_s.shape)}"
        )
    pairs = (s.shape[0], s.shape[1], h.shape[1])
    check_size("additive_attention", "u", (*pairs, *v.shape))
    if mask is not None:
        check_pairs("additive_attention", "mask", mask, pairs)
    if lengths is not None:
        check_lengths("additive_attention", lengths, s.shape[0])


def validate_values(
    s: Array,
    h: Array,
    weight_s: Array,
    weight_h: Array,
    v: Array,
    *,
    mask: Array | None = None,
    lengths: Array | None = None,
) -> None:
    if lengths is not None:
        check_length_values("additive_attention", lengths, h.shape[1])


@operation
def forward(
    s: Float[Array, "N J D"],
    h: Float[Array, "N T E"],
    weight_s: Float[Array, "A D"],
    weight_h: Float[Array, "A E"],
    v: Float[Array, "A"],
    *,
    mask: Bool[Array, "#N #J #T"] | None = None,
    lengths: Int[Array, "N"] | None = None,
) -> tuple[Float[Array, "N J E"], Cache]:
    """Additive attention of the states s over the states h, which are keys and values at once.

    Forward:  u_ji = tanh(W_s s_j + W_h h_i),  score_ji = v·u_ji,  −∞ where s_j may not look at h_i;
              α_j = softmax(score_j) over i,  c_j = Σ_i α_ji h_i
    Backward: dα = dc hᵀ,  dscore = α (dα − Σ_i α dα),  dv = Σ dscore u,
              da = dscore v (1 − u²),  dW_s = Σ_j (Σ_i da) s_jᵀ,  dW_h = Σ_i (Σ_j da) h_iᵀ,
              ds_j = Σ_i da W_s,  dh_i = Σ_j α_ji dc_j + Σ_j da W_h

    W_s and W_h are the two blocks of the matrix that Yamanishi applies to [s; h]. s_j may look at
    h_i where `mask` is True and i is below its sequence's entry of `lengths`, as far as they are
    given; if it may look nowhere, c_j and all gradients through it are 0.

    A weight of 0, as of a pair that is masked, stands for a product that is left out or is made:
    what is NaN or infinite there in s, h or dc may or may not reach the results.

    Shapes: s (N, J, D), h (N, T, E) with T at least 1, weight_s (A, D), weight_h (A, E), v (A,),
    c (N, J, E); mask broadcasts to (N, J, T); lengths (N,), integers from 0 to T.
    Raises ShapeError where these do not fit, ArgumentError for other lengths (looked at only if
    they are a NumPy array).
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 18 to 20, with
    one vector v; Bahdanau, Cho, Bengio, Neural machine translation by jointly learning to align and
    translate (2015).
    """
    xp = array_namespace(s)
    a = xp.expand_dims(s @ weight_s.T, axis=2) + xp.expand_dims(h @ weight_h.T, axis=1)
    u = xp.tanh(a)
    score = masked(u @ v, mask, lengths)
    alpha = weights(score)
    c = alpha @ h
    return c, Cache(s, h, weight_s, weight_h, v, u, alpha)


@operation
def backward(
    dc: Float[Array, "N J E"], cache: Cache
) -> tuple[
    Float[Array, "N J D"],
    Float[Array, "N T E"],
    Float[Array, "A D"],
    Float[Array, "A E"],
    Float[Array, "A"],
]:
    """dscore = α (dα − Σ α dα),  da = dscore v (1 − u²);  h gets Σ α dc and Σ da W_h."""
    s, h, weight_s, weight_h, v, u, alpha = cache
    xp = array_namespace(dc)
    dalpha = dc @ xp.matrix_transpose(h)
    expected_dalpha = xp.sum(alpha * dalpha, axis=-1, keepdims=True)
    dscore = alpha * (dalpha - expected_dalpha)
    pairs = (math.prod(dscore.shape), v.shape[0])
    dv = xp.reshape(dscore, pairs[:1]) @ xp.reshape(u, pairs)
    du = xp.expand_dims(dscore, axis=-1) * v
    da = du * (1.0 - u * u)
    da_s = xp.sum(da, axis=2)
    da_h = xp.sum(da, axis=1)
    ds = da_s @ weight_s
    dh = xp.matrix_transpose(alpha) @ dc + da_h @ weight_h
    dweight_s = rows(da_s).T @ rows(s)
    dweight_h = rows(da_h).T @ rows(h)
    return ds, dh, dweight_s, dweight_h, dv


def rows(x: Float[Array, "N T D"]) -> Float[Array, "rows D"]:
    """The steps of all sequences, one below the other."""
    return array_namespace(x).reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))
