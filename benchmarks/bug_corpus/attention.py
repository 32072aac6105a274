# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Attention, which is no op: one head, several heads by einsum and a mask, self-attention."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# One head; as many queries as keys, as wide as the sequence is long, so that shapes hide nothing


def attention_forward(Q, K, V):
    scale = 1 / np.sqrt(Q.shape[-1]).astype(Q.dtype)
    A = softmax(Q @ K.T * scale)
    return A @ V, (Q, K, V, A, scale)


def attention_backward(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(-1, keepdims=True))
    dQ = dZ @ K * scale
    dK = dZ.T @ Q * scale
    return dQ, dK, dV


def attention_dv_untransposed(dY, cache):
    Q, K, V, A, scale = cache
    dV = A @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(-1, keepdims=True))
    return dZ @ K * scale, dZ.T @ Q * scale, dV


def attention_dk_untransposed(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(-1, keepdims=True))
    return dZ @ K * scale, dZ @ Q * scale, dV


def attention_dq_transposed(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(-1, keepdims=True))
    dQ = dZ.T @ K * scale
    dK = dZ.T @ Q * scale
    return dQ, dK, dV


def attention_without_sum_term(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * dA
    return dZ @ K * scale, dZ.T @ Q * scale, dV


def attention_without_scale(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(-1, keepdims=True))
    return dZ @ K, dZ.T @ Q, dV


def attention_divides_by_scale(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(-1, keepdims=True)) / scale
    return dZ @ K, dZ.T @ Q, dV


def attention_sum_over_queries(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(axis=0, keepdims=True))
    return dZ @ K * scale, dZ.T @ Q * scale, dV


def attention_swapped(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    dZ = A * (dA - (dA * A).sum(-1, keepdims=True))
    dQ, dK = dZ.T @ Q * scale, dZ @ K * scale
    return dQ, dK, dV


def attention_no_softmax_backward(dY, cache):
    Q, K, V, A, scale = cache
    dV = A.T @ dY
    dA = dY @ V.T
    return dA @ K * scale, dA.T @ Q * scale, dV


ATTENTION = Exercise(
    "attention, one head",
    attention_forward,
    attention_backward,
    lambda rng: tuple(rng.normal(size=(5, 5)) for _ in range(3)),
    (
        Bug(
            attention_dv_untransposed,
            "A dY where Aᵀ dY belongs",
            kinds("transpose missing"),
            ("V",),
            ("A",),
        ),
        Bug(
            attention_dk_untransposed,
            "dZ Q where dZᵀ Q belongs",
            kinds("transpose missing"),
            ("K",),
            ("dZ", "d(Z)"),
        ),
        Bug(
            attention_dq_transposed,
            "dZᵀ K where dZ K belongs",
            kinds("transposed"),
            ("Q",),
            ("dZ", "d(Z)"),
        ),
        Bug(
            attention_without_sum_term,
            "the Σ term of softmax's backward is left out",
            kinds("term missing", "activation derivative forgotten"),
            ("Q", "K"),
        ),
        Bug(
            attention_without_scale,
            "1/√d is forgotten",
            kinds("scaled", "scale missing"),
            ("Q", "K"),
            ("√", "scale"),
        ),
        Bug(
            attention_divides_by_scale,
            "divided by 1/√d instead of multiplied: d times too large",
            kinds("scaled", "scale inverted"),
            ("Q", "K"),
        ),
        Bug(
            attention_sum_over_queries,
            "the Σ of softmax's backward runs over the queries",
            kinds("wrong axis"),
            ("Q", "K"),
        ),
        Bug(
            attention_swapped,
            "dQ and dK come back in each other's place",
            kinds("gradients swapped"),
            ("Q", "K"),
        ),
        Bug(
            attention_no_softmax_backward,
            "softmax's backward is left out",
            kinds("activation derivative forgotten", "function missing", "factor missing"),
            ("Q", "K"),
        ),
    ),
)

# A batch of heads by einsum, other lengths for queries and keys, a mask


def heads_forward(q, k, v, mask):
    d = q.shape[-1]
    s = np.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(d).astype(q.dtype)
    s = np.where(mask, s, -np.inf)
    top = np.max(s, axis=-1, keepdims=True, initial=-1e30)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    return np.einsum("bhts,bhsd->bhtd", p, v), {"q": q, "k": k, "v": v, "p": p, "d": d, "m": mask}


def heads_backward(dy, c):
    dv = np.einsum("bhts,bhtd->bhsd", c["p"], dy)
    dp = np.einsum("bhtd,bhsd->bhts", dy, c["v"])
    ds = c["p"] * (dp - np.einsum("bhts,bhts->bht", dp, c["p"])[..., None])
    ds /= np.sqrt(c["d"])
    dq = np.einsum("bhts,bhsd->bhtd", ds, c["k"])
    dk = np.einsum("bhts,bhtd->bhsd", ds, c["q"])
    return dq, dk, dv


def heads_without_sum(dy, c):
    dv = np.einsum("bhts,bhtd->bhsd", c["p"], dy)
    dp = np.einsum("bhtd,bhsd->bhts", dy, c["v"])
    ds = c["p"] * dp
    ds /= np.sqrt(c["d"])
    dq = np.einsum("bhts,bhsd->bhtd", ds, c["k"])
    dk = np.einsum("bhts,bhtd->bhsd", ds, c["q"])
    return dq, dk, dv


def heads_probabilities_without_mask(dy, c):
    s = np.einsum("bhtd,bhsd->bhts", c["q"], c["k"]) / np.sqrt(c["d"]).astype(dy.dtype)
    p = softmax(s)
    dv = np.einsum("bhts,bhtd->bhsd", p, dy)
    dp = np.einsum("bhtd,bhsd->bhts", dy, c["v"])
    ds = p * (dp - np.einsum("bhts,bhts->bht", dp, p)[..., None]) / np.sqrt(c["d"]).astype(dy.dtype)
    dq = np.einsum("bhts,bhsd->bhtd", ds, c["k"])
    dk = np.einsum("bhts,bhtd->bhsd", ds, c["q"])
    return dq, dk, dv


def heads_scale_in_dq_only(dy, c):
    dv = np.einsum("bhts,bhtd->bhsd", c["p"], dy)
    dp = np.einsum("bhtd,bhsd->bhts", dy, c["v"])
    ds = c["p"] * (dp - np.einsum("bhts,bhts->bht", dp, c["p"])[..., None])
    dq = np.einsum("bhts,bhsd->bhtd", ds, c["k"]) / np.sqrt(c["d"]).astype(dy.dtype)
    dk = np.einsum("bhts,bhtd->bhsd", ds, c["q"])
    return dq, dk, dv


def heads_dv_of_mask(dy, c):
    dq, dk, _ = heads_backward(dy, c)
    mask = np.broadcast_to(c["m"], c["p"].shape).astype(dy.dtype)
    return dq, dk, np.einsum("bhts,bhtd->bhsd", mask, dy)


HEADS = Exercise(
    "attention, several heads and a mask",
    heads_forward,
    heads_backward,
    lambda rng: (
        rng.normal(size=(2, 3, 4, 3)),
        rng.normal(size=(2, 3, 5, 3)),
        rng.normal(size=(2, 3, 5, 2)),
        np.tril(np.ones((4, 5), dtype=bool), 1),
    ),
    (
        Bug(
            heads_without_sum,
            "the Σ term of softmax's backward is left out",
            kinds("term missing"),
            ("q", "k"),
        ),
        Bug(
            heads_probabilities_without_mask,
            "backward computes the probabilities again and forgets the mask",
            kinds("mask forgotten", "masked rows", "stale variable"),
            ("q", "k", "v"),
            ("mask", "c['p'] for p", "c['p'] for softmax(s)"),
        ),
        Bug(
            heads_scale_in_dq_only,
            "1/√d is forgotten in dk",
            kinds("scaled", "scale missing"),
            ("k",),
            ("√",),
        ),
        Bug(
            heads_dv_of_mask,
            "dv uses the mask where the probabilities belong",
            kinds("stale variable", "factor missing", "function missing"),
            ("v",),
        ),
    ),
)

# Self-attention: x forks into three, so three gradients come together


def self_attention_forward(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    p = softmax(q @ k.T / np.sqrt(k.shape[1]).astype(x.dtype))
    return p @ v, (x, Wq, Wk, Wv, q, k, v, p)


def self_attention_backward(dy, cache):
    x, Wq, Wk, Wv, q, k, v, p = cache
    dv = p.T @ dy
    dp = dy @ v.T
    ds = p * (dp - np.sum(dp * p, axis=1, keepdims=True)) / np.sqrt(k.shape[1]).astype(x.dtype)
    dq, dk = ds @ k, ds.T @ q
    dx = dq @ Wq.T + dk @ Wk.T + dv @ Wv.T
    return dx, x.T @ dq, x.T @ dk, x.T @ dv


def self_attention_one_branch_lost(dy, cache):
    x, Wq, Wk, Wv, q, k, v, p = cache
    dv = p.T @ dy
    dp = dy @ v.T
    ds = p * (dp - np.sum(dp * p, axis=1, keepdims=True)) / np.sqrt(k.shape[1]).astype(x.dtype)
    dq, dk = ds @ k, ds.T @ q
    dx = dq @ Wq.T + dv @ Wv.T
    return dx, x.T @ dq, x.T @ dk, x.T @ dv


def self_attention_branch_twice(dy, cache):
    x, Wq, Wk, Wv, q, k, v, p = cache
    dv = p.T @ dy
    dp = dy @ v.T
    ds = p * (dp - np.sum(dp * p, axis=1, keepdims=True)) / np.sqrt(k.shape[1]).astype(x.dtype)
    dq, dk = ds @ k, ds.T @ q
    dx = dq @ Wq.T + dk @ Wq.T + dv @ Wv.T
    return dx, x.T @ dq, x.T @ dk, x.T @ dv


SELF_ATTENTION = Exercise(
    "self-attention",
    self_attention_forward,
    self_attention_backward,
    lambda rng: (rng.normal(size=(5, 4)), *(rng.normal(size=(4, 4)) for _ in range(3))),
    (
        Bug(
            self_attention_one_branch_lost,
            "the branch of the keys is not added to dx",
            kinds("term missing"),
            ("x",),
            ("Wk", "dk", "W_k"),
        ),
        Bug(
            self_attention_branch_twice,
            "dk goes back through Wq",
            kinds("stale variable"),
            ("x",),
            ("Wq", "W_q"),
        ),
    ),
)

EXERCISES = (ATTENTION, HEADS, SELF_ATTENTION)
