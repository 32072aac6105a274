# mypy: ignore-errors

"""S. Yamanishi, sections 6 and 7: scores of attention, and the transformer."""

from __future__ import annotations

import math

import numpy as np

import handgrad as hg
from docs.mistakes.functions import softmax
from docs.mistakes.row import Row, Verdict, checked, measured, normal
from docs.mistakes.yamanishi_recurrence import no_backward

# Section 6: s of 3 values, h = [h_f; h_b] of 2 · 2


def dot_score(s, h):
    score = h @ s / math.sqrt(len(s))
    return score, (s, h)


def cosine_score(s, h):
    score = h @ s / np.sqrt((h * h).sum(axis=1) * (s @ s))
    return score, (s, h)


def dot_score_backward(dscore, cache):
    s, h = cache
    scale = 1 / math.sqrt(len(s))
    return scale * (dscore @ h), scale * np.outer(dscore, s)


def additive_score(s, h, W, v_t, v_s):
    """(19), second line; v_s, which the list of parameters has, stands nowhere in it."""
    u = np.tanh(W @ np.concatenate([s, h]))
    return np.asarray(v_t @ u), (s, h, W, v_t, u)


def v_s_is_learned(dscore, cache):
    s, h, W, v_t, u = cache
    da = dscore * v_t * (1 - u * u)
    dsh = W.T @ da
    return dsh[:3], dsh[3:], np.outer(da, np.concatenate([s, h])), 0 * u, dscore * u


def v_t_is_learned(dscore, cache):
    s, h, W, v_t, u = cache
    da = dscore * v_t * (1 - u * u)
    dsh = W.T @ da
    return dsh[:3], dsh[3:], np.outer(da, np.concatenate([s, h])), dscore * u, 0 * u


# Section 7


def as_many_keys_as_features(q, K, V):
    """K has the rows k₁ … k_dim_i, V the rows v₁ … v_dim_o."""
    keys = np.stack([K[i] for i in range(K.shape[1])])
    values = np.stack([V[i] for i in range(V.shape[1])])
    return softmax(keys @ q / math.sqrt(len(q))) @ values, None


def l_keys_and_values(q, K, V):
    weights = softmax(K @ q / math.sqrt(len(q)))
    return weights @ V, (q, K, V, weights)


def query_backward(dr, cache):
    q, K, V, weights = cache
    dweights = V @ dr
    dscore = weights * (dweights - weights @ dweights) / math.sqrt(len(q))
    return K.T @ dscore, np.outer(dscore, q), np.outer(weights, dr)


def heads_by_element(X, R_1, R_2):
    """Two heads of d_model/2 features put together element by element, and the skip connection."""
    return X + R_1 * R_2, None


def heads_by_feature(X, R_1, R_2):
    return X + np.concatenate([R_1, R_2], axis=1), ()


def heads_by_feature_backward(dY, cache):
    d = dY.shape[1] // 2
    return dY, dY[:, :d], dY[:, d:]


def reads(y_of_heads):
    """The number of heads, of two, that every output is made of."""
    heads = normal((5, 2), (5, 2))
    moved = [y_of_heads(*(head + (i == j) for j, head in enumerate(heads))) for i in (0, 1)]
    found = sum((y != y_of_heads(*heads)).any(axis=0).astype(int) for y in moved)
    return Verdict(bool((found == 2).all()), f"outputs read {', '.join(map(str, found))} heads")


def without_wo():
    return reads(lambda R_1, R_2: np.concatenate([R_1, R_2], axis=1))


def with_wo():
    (W_O,) = normal((4, 4))
    return reads(lambda R_1, R_2: np.concatenate([R_1, R_2], axis=1) @ W_O)


def with_wo_forward(R_1, R_2, W_O):
    R = np.concatenate([R_1, R_2], axis=1)
    return R @ W_O, (R, W_O)


def with_wo_backward(dY, cache):
    R, W_O = cache
    dR = dY @ W_O.T
    d = R.shape[1] // 2
    return dR[:, :d], dR[:, d:], R.T @ dY


def moved_by(positions, kind):
    """Return whether what is added to a sequence changes when it stands three positions later."""
    (x,) = normal((5, 4))
    moves = not np.allclose(positions(x, 0), positions(x, 3))
    text = f"three positions later they {'change' if moves else 'stay'}: they are "
    return Verdict(moves == (kind == "absolute"), text + ("absolute" if moves else "relative"))


def sinusoids_as_relative():
    return moved_by(sinusoids, "relative")


def sinusoids_as_absolute():
    return moved_by(sinusoids, "absolute")


def sinusoids(x, offset):
    return hg.ops.positional_encoding.forward(x, offset=offset)[0] - x


ROWS = (
    Row(
        "(19): v_t and v_s; scores of vectors of two sizes",
        "The score has v_t, the list of parameters v_s: learned as listed, it never changes. "
        "Cosine and dot product compare s with h = [h_f; h_b], so both have to be of one size.",
        (
            checked(
                "score = v_tᵀ tanh(W[s; h]), v_s learned",
                (additive_score, v_s_is_learned),
                ((3,), (4,), (5, 7), (5,), (5,)),
            ),
            checked(
                "score = sᵀh/√d, s of 3 values, h of 4",
                (dot_score, dot_score_backward),
                ((3,), (6, 4)),
            ),
            checked(
                "score = cosine(s, h), s of 3 values, h of 4",
                (cosine_score, no_backward),
                ((3,), (6, 4)),
            ),
        ),
        (
            checked(
                "score = vᵀ tanh(W[s; h]), v learned",
                (additive_score, v_t_is_learned),
                ((3,), (4,), (5, 7), (5,), (5,)),
            ),
            checked(
                "score = sᵀh/√d, both of 4 values",
                (dot_score, dot_score_backward),
                ((4,), (6, 4)),
            ),
            checked("with softmax and context: hg.ops.additive_attention", "additive_attention"),
            checked("with softmax and context: hg.ops.cosine_attention", "cosine_attention"),
        ),
    ),
    Row(
        "Section 7: how many keys there are",
        "There are L pairs; K and V are printed with as many rows as columns.",
        (
            checked(
                "k₁ … k_dim_i, v₁ … v_dim_o",
                (as_many_keys_as_features, no_backward),
                ((3,), (6, 3), (6, 2)),
            ),
        ),
        (
            checked(
                "k₁ … k_L, v₁ … v_L",
                (l_keys_and_values, query_backward),
                ((3,), (6, 3), (6, 2)),
            ),
        ),
    ),
    Row(
        "Section 7: how heads are put together",
        "Heads stand side by side along the features; element by element they would be as "
        "narrow as one head. And without W_O no output reads more than one head.",
        (
            checked(
                "heads concatenated element-wise",
                (heads_by_element, no_backward),
                ((5, 4), (5, 2), (5, 2)),
            ),
            measured("R = concat(R₁, R₂)", without_wo),
        ),
        (
            checked(
                "heads concatenated along the features",
                (heads_by_feature, heads_by_feature_backward),
                ((5, 4), (5, 2), (5, 2)),
            ),
            measured("R = concat(R₁, R₂) W_O", with_wo),
            checked("the same", (with_wo_forward, with_wo_backward), ((5, 2), (5, 2), (4, 4))),
        ),
    ),
    Row(
        "Section 7: what kind of positions sinusoids are",
        "They are added by the position itself, not by a distance between positions.",
        (
            measured(
                "cos(θ_word_pos), sin(θ_word_pos) are relative",
                sinusoids_as_relative,
            ),
        ),
        (
            measured("they are absolute", sinusoids_as_absolute),
            checked("as hg.ops.positional_encoding has them", "positional_encoding"),
        ),
    ),
)
