"""Cosine attention: a decoder's states look at an encoder's, scored by the angle between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ShapeError
from handgrad.ops.arguments import (
    check_eps,
    check_length_values,
    check_lengths,
    check_size,
)
from handgrad.ops.scores import check_pairs, check_states, masked, weights

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Cache(NamedTuple):
    """h as the values, both states at length 1 with what brought them there, and the weights α."""

    h: Array
    s_hat: Array
    h_hat: Array
    inv_s: Array
    inv_h: Array
    alpha: Array


def validate(
    s: Array,
    h: Array,
    *,
    mask: Array | None = None,
    lengths: Array | None = None,
    eps: float = 1e-8,
) -> None:
    check_states("cosine_attention", s, h)
    if s.shape[2] != h.shape[2]:
        raise ShapeError(
            f"cosine_attention: s has shape {tuple(s.shape)} and h {tuple(h.shape)}; "
            "allowed: states of the same size"
        )
    pairs = (s.shape[0], s.shape[1], h.shape[1])
    check_size("cosine_attention", "the scores", pairs)
    if mask is not None:
        check_pairs("cosine_attention", "mask", mask, pairs)
    if lengths is not None:
        check_lengths("cosine_attention", lengths, s.shape[0])
    check_eps("cosine_attention", eps)


def validate_values(
    s: Array,
    h: Array,
    *,
    mask: Array | None = None,
    lengths: Array | None = None,
    eps: float = 1e-8,
) -> None:
    if lengths is not None:
        check_length_values("cosine_attention", lengths, h.shape[1])


@operation
def forward(
    s: Float[Array, "N J D"],
    h: Float[Array, "N T D"],
    *,
    mask: Bool[Array, "#N #J #T"] | None = None,
    lengths: Int[Array, "N"] | None = None,
    eps: float = 1e-8,
) -> tuple[Float[Array, "N J D"], Cache]:
    """Cosine attention of the states s over the states h, which are keys and values at once.

    Forward:  ŝ = s/√(|s|² + eps),  ĥ = h/√(|h|² + eps),  score = ŝ ĥᵀ,  −∞ where s_j may not look
              at h_i;  α_j = softmax(score_j) over i,  c_j = Σ_i α_ji h_i
    Backward: dα = dc hᵀ,  dscore = α (dα − Σ_i α dα),  dŝ = dscore ĥ,  dĥ = dscoreᵀ ŝ,
              ds = (dŝ − ŝ Σ dŝ ŝ)/√(|s|² + eps),
              dh = αᵀ dc + (dĥ − ĥ Σ dĥ ĥ)/√(|h|² + eps)

    A state of zeros has cosine 0 with every other as long as eps > 0. s_j may look at h_i where
    `mask` is True and i is below its sequence's entry of `lengths`, as far as they are given; if it
    may look nowhere, c_j and all gradients through it are 0.

    A weight of 0, as of a pair that is masked, stands for a product that is left out or is made:
    what is NaN or infinite there in s, h or dc may or may not reach the results.

    Shapes: s, c (N, J, D), h (N, T, D) with T at least 1; mask broadcasts to (N, J, T); lengths
    (N,), integers from 0 to T.
    Raises ShapeError where these do not fit, ArgumentError for eps < 0 or other lengths (looked at
    only if they are a NumPy array).
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 18 to 20, with
    states of one size, and eps against division by 0.
    """
    xp = array_namespace(s)
    inv_s = 1.0 / xp.sqrt(xp.sum(s * s, axis=-1, keepdims=True) + eps)
    inv_h = 1.0 / xp.sqrt(xp.sum(h * h, axis=-1, keepdims=True) + eps)
    s_hat = s * inv_s
    h_hat = h * inv_h
    score = masked(s_hat @ xp.matrix_transpose(h_hat), mask, lengths)
    alpha = weights(score)
    c = alpha @ h
    return c, Cache(h, s_hat, h_hat, inv_s, inv_h, alpha)


@operation
def backward(
    dc: Float[Array, "N J D"], cache: Cache
) -> tuple[Float[Array, "N J D"], Float[Array, "N T D"]]:
    """dscore = α (dα − Σ α dα),  dŝ = dscore ĥ,  ds = (dŝ − ŝ Σ dŝ ŝ)/|s|, and h the same way."""
    h, s_hat, h_hat, inv_s, inv_h, alpha = cache
    xp = array_namespace(dc)
    dalpha = dc @ xp.matrix_transpose(h)
    expected_dalpha = xp.sum(alpha * dalpha, axis=-1, keepdims=True)
    dscore = alpha * (dalpha - expected_dalpha)
    ds_hat = dscore @ h_hat
    dh_hat = xp.matrix_transpose(dscore) @ s_hat
    along_s = xp.sum(ds_hat * s_hat, axis=-1, keepdims=True)
    along_h = xp.sum(dh_hat * h_hat, axis=-1, keepdims=True)
    ds = (ds_hat - s_hat * along_s) * inv_s
    dh = xp.matrix_transpose(alpha) @ dc + (dh_hat - h_hat * along_h) * inv_h
    return ds, dh
