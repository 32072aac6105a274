# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Small networks and functions without an op: two layers, residuals, similarities, penalties."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# Two layers, softmax and cross-entropy, gradients in a dict as in courses


def two_layer_forward(X, W1, b1, W2, b2, labels):
    h = np.maximum(0, X @ W1 + b1)
    scores = h @ W2 + b2
    scores = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    loss = -np.log(p[range(len(X)), labels]).mean()
    return loss, {"X": X, "W1": W1, "W2": W2, "h": h, "p": p, "labels": labels}


def two_layer_backward(dloss, cache):
    X, W2, h, p = cache["X"], cache["W2"], cache["h"], cache["p"]
    onehot = np.eye(p.shape[1], dtype=p.dtype)[cache["labels"]]
    dscores = dloss * (p - onehot) / len(X)
    dW2, db2 = h.T @ dscores, dscores.sum(axis=0)
    dh = dscores @ W2.T
    da = dh * (h > 0)
    dX = da @ cache["W1"].T
    return dX, X.T @ da, da.sum(axis=0), dW2, db2


def two_layer_without_relu(dloss, cache):
    X, W2, h, p = cache["X"], cache["W2"], cache["h"], cache["p"]
    onehot = np.eye(p.shape[1], dtype=p.dtype)[cache["labels"]]
    dscores = dloss * (p - onehot) / len(X)
    dW2, db2 = h.T @ dscores, dscores.sum(axis=0)
    da = dscores @ W2.T
    dX = da @ cache["W1"].T
    return dX, X.T @ da, da.sum(axis=0), dW2, db2


def two_layer_mask_of_scores_side(dloss, cache):
    X, W2, h, p = cache["X"], cache["W2"], cache["h"], cache["p"]
    onehot = np.eye(p.shape[1], dtype=p.dtype)[cache["labels"]]
    dscores = dloss * (p - onehot) / len(X)
    dW2, db2 = h.T @ dscores, dscores.sum(axis=0)
    dh = dscores @ W2.T
    da = dh * (dh > 0)
    dX = da @ cache["W1"].T
    return dX, X.T @ da, da.sum(axis=0), dW2, db2


def two_layer_mean_twice(dloss, cache):
    X, W2, h, p = cache["X"], cache["W2"], cache["h"], cache["p"]
    onehot = np.eye(p.shape[1], dtype=p.dtype)[cache["labels"]]
    dscores = dloss * (p - onehot) / len(X)
    dW2, db2 = h.T @ dscores, dscores.sum(axis=0)
    dh = dscores @ W2.T
    da = dh * (h > 0)
    dX = da @ cache["W1"].T
    return dX, X.T @ da / len(X), da.mean(axis=0), dW2, db2


def two_layer_dw2_of_input(dloss, cache):
    X, W2, h, p = cache["X"], cache["W2"], cache["h"], cache["p"]
    onehot = np.eye(p.shape[1], dtype=p.dtype)[cache["labels"]]
    dscores = dloss * (p - onehot) / len(X)
    dW2, db2 = X.T @ dscores, dscores.sum(axis=0)
    dh = dscores @ W2.T
    da = dh * (h > 0)
    dX = da @ cache["W1"].T
    return dX, X.T @ da, da.sum(axis=0), dW2, db2


def two_layer_biases_swapped(dloss, cache):
    X, W2, h, p = cache["X"], cache["W2"], cache["h"], cache["p"]
    onehot = np.eye(p.shape[1], dtype=p.dtype)[cache["labels"]]
    dscores = dloss * (p - onehot) / len(X)
    dW2, db2 = h.T @ dscores, dscores.sum(axis=0)
    dh = dscores @ W2.T
    da = dh * (h > 0)
    dX = da @ cache["W1"].T
    return dX, X.T @ da, db2, dW2, da.sum(axis=0)


TWO_LAYERS = Exercise(
    "two-layer classifier",
    two_layer_forward,
    two_layer_backward,
    lambda rng: (
        rng.normal(size=(6, 5)),
        rng.normal(size=(5, 5)),
        rng.normal(size=5),
        rng.normal(size=(5, 5)),
        rng.normal(size=5),
        rng.integers(0, 5, 6),
    ),
    (
        Bug(
            two_layer_without_relu,
            "the mask of ReLU is forgotten",
            kinds("mask forgotten", "activation derivative forgotten", "factor missing"),
            ("X", "W1", "b1"),
        ),
        Bug(
            two_layer_mask_of_scores_side,
            "the sign of dh decides, not that of h",
            kinds("stale variable"),
            ("X", "W1", "b1"),
            ("h",),
        ),
        Bug(
            two_layer_mean_twice,
            "1/N once more in dW1 and db1",
            kinds("scaled", "extra factor", "mean for sum"),
            ("W1", "b1"),
        ),
        Bug(
            two_layer_dw2_of_input,
            "X where h belongs in dW2",
            kinds("stale variable"),
            ("W2",),
            ("X",),
        ),
        Bug(
            two_layer_biases_swapped,
            "db1 and db2 come back in each other's place",
            kinds("gradients swapped"),
            ("b1", "b2"),
        ),
    ),
)

# Residual connection


def residual_forward(x, W):
    a = np.tanh(x @ W)
    return x + a, (x, W, a)


def residual_backward(dy, cache):
    x, W, a = cache
    da = dy * (1 - a**2)
    return dy + da @ W.T, x.T @ da


def residual_identity_lost(dy, cache):
    x, W, a = cache
    da = dy * (1 - a**2)
    return da @ W.T, x.T @ da


def residual_branch_lost(dy, cache):
    x, W, a = cache
    da = dy * (1 - a**2)
    return dy, x.T @ da


RESIDUAL = Exercise(
    "residual connection",
    residual_forward,
    residual_backward,
    lambda rng: (rng.normal(size=(4, 5)), rng.normal(size=(5, 5))),
    (
        Bug(
            residual_identity_lost,
            "the gradient that flows past the branch is left out",
            kinds("term missing"),
            ("x",),
            ("dy",),
        ),
        Bug(
            residual_branch_lost,
            "the gradient through the branch is left out",
            kinds("term missing"),
            ("x",),
        ),
    ),
)

# Cosine similarity of rows


def cosine_forward(a, b):
    na = np.sqrt((a * a).sum(1, keepdims=True))
    nb = np.sqrt((b * b).sum(1, keepdims=True))
    c = (a * b).sum(1, keepdims=True) / (na * nb)
    return c[:, 0], (a, b, na, nb, c)


def cosine_backward(dy, cache):
    a, b, na, nb, c = cache
    g = dy[:, None]
    da = g * (b / (na * nb) - c * a / na**2)
    db = g * (a / (na * nb) - c * b / nb**2)
    return da, db


def cosine_norms_as_constants(dy, cache):
    a, b, na, nb, c = cache
    g = dy[:, None]
    da = g * b / (na * nb)
    db = g * a / (na * nb)
    return da, db


def cosine_norm_not_squared(dy, cache):
    a, b, na, nb, c = cache
    g = dy[:, None]
    da = g * (b / (na * nb) - c * a / na)
    db = g * (a / (na * nb) - c * b / nb**2)
    return da, db


def cosine_plus(dy, cache):
    a, b, na, nb, c = cache
    g = dy[:, None]
    da = g * (b / (na * nb) + c * a / na**2)
    db = g * (a / (na * nb) - c * b / nb**2)
    return da, db


def cosine_other_norm(dy, cache):
    a, b, na, nb, c = cache
    g = dy[:, None]
    da = g * (b / (na * nb) - c * a / nb**2)
    db = g * (a / (na * nb) - c * b / nb**2)
    return da, db


COSINE = Exercise(
    "cosine similarity",
    cosine_forward,
    cosine_backward,
    lambda rng: (rng.normal(size=(5, 4)), rng.normal(size=(5, 4))),
    (
        Bug(
            cosine_norms_as_constants,
            "the term that comes from the norm is left out",
            kinds("term missing"),
            ("a", "b"),
        ),
        Bug(
            cosine_norm_not_squared,
            "|a| where |a|² belongs",
            kinds("factor missing"),
            ("a",),
            ("na",),
        ),
        Bug(cosine_plus, "plus where minus belongs", kinds("wrong sign"), ("a",)),
        Bug(
            cosine_other_norm,
            "|b|² where |a|² belongs",
            kinds("stale variable"),
            ("a",),
            ("nb",),
        ),
    ),
)

# Linear regression with a penalty


def ridge_forward(X, w, t, lam=0.3):
    r = X @ w - t
    return 0.5 * np.sum(r**2) + 0.5 * lam * np.sum(w**2), (X, w, r, lam)


def ridge_backward(dy, cache):
    X, w, r, lam = cache
    return dy * np.outer(r, w), dy * (X.T @ r + lam * w)


def ridge_without_penalty(dy, cache):
    X, w, r, lam = cache
    return dy * np.outer(r, w), dy * (X.T @ r)


def ridge_penalty_doubled(dy, cache):
    X, w, r, lam = cache
    return dy * np.outer(r, w), dy * (X.T @ r + 2 * lam * w)


def ridge_outer_swapped(dy, cache):
    X, w, r, lam = cache
    return dy * np.outer(w, r), dy * (X.T @ r + lam * w)


RIDGE = Exercise(
    "linear regression with a penalty",
    ridge_forward,
    ridge_backward,
    lambda rng: (rng.normal(size=(5, 5)), rng.normal(size=5), rng.normal(size=5)),
    (
        Bug(
            ridge_without_penalty,
            "the gradient of the penalty is left out",
            kinds("term missing"),
            ("w",),
            ("w",),
        ),
        Bug(
            ridge_penalty_doubled,
            "λ w twice: the ½ of the penalty is forgotten",
            kinds("extra factor", "term scaled"),
            ("w",),
        ),
        Bug(
            ridge_outer_swapped,
            "w rᵀ where r wᵀ belongs",
            kinds("transposed", "operands swapped"),
            ("X",),
        ),
    ),
    wrt=("X", "w"),
)

# Log-sum-exp, variance, and a bilinear form


def logsumexp_forward(x):
    m = x.max(1, keepdims=True)
    y = m[:, 0] + np.log(np.exp(x - m).sum(1))
    return y, (x, y)


def logsumexp_backward(dy, cache):
    x, y = cache
    return dy[:, None] * np.exp(x - y[:, None])


def logsumexp_backward_of_max(dy, cache):
    x, y = cache
    return dy[:, None] * np.exp(x - x.max(1, keepdims=True))


LOG_SUM_EXP = Exercise(
    "log-sum-exp",
    logsumexp_forward,
    logsumexp_backward,
    lambda rng: (rng.normal(size=(4, 5)),),
    (
        Bug(
            logsumexp_backward_of_max,
            "the exponentials are not divided by their sum",
            kinds("factor missing", "stale variable"),
            ("x",),
        ),
    ),
)


def variance_forward(x):
    centred = x - x.mean(axis=0)
    return (centred**2).sum(axis=0) / (len(x) - 1), (centred, len(x) - 1)


def variance_backward(dy, cache):
    centred, dof = cache
    return 2 * centred * dy / dof


def variance_over_n(dy, cache):
    centred, dof = cache
    return 2 * centred * dy / len(centred)


VARIANCE = Exercise(
    "sample variance",
    variance_forward,
    variance_backward,
    lambda rng: (rng.normal(size=(6, 3)),),
    (
        Bug(
            variance_over_n,
            "divided by n where forward divides by n − 1",
            kinds("scaled", "stale variable"),
            ("x",),
        ),
    ),
)


def bilinear_forward(x, A, y):
    return np.einsum("ni,ij,nj->n", x, A, y), (x, A, y)


def bilinear_backward(dz, cache):
    x, A, y = cache
    dx = np.einsum("n,ij,nj->ni", dz, A, y)
    dA = np.einsum("n,ni,nj->ij", dz, x, y)
    dy = np.einsum("n,ij,ni->nj", dz, A, x)
    return dx, dA, dy


def bilinear_a_for_its_transpose(dz, cache):
    x, A, y = cache
    dx = np.einsum("n,ji,nj->ni", dz, A, y)
    dA = np.einsum("n,ni,nj->ij", dz, x, y)
    dy = np.einsum("n,ij,ni->nj", dz, A, x)
    return dx, dA, dy


BILINEAR = Exercise(
    "bilinear form",
    bilinear_forward,
    bilinear_backward,
    lambda rng: (rng.normal(size=(4, 5)), rng.normal(size=(5, 5)), rng.normal(size=(4, 5))),
    (
        Bug(
            bilinear_a_for_its_transpose,
            "Aᵀ where A belongs",
            kinds("transposed", "transpose missing"),
            ("x",),
            ("A",),
        ),
    ),
)

EXERCISES = (
    TWO_LAYERS,
    RESIDUAL,
    COSINE,
    RIDGE,
    LOG_SUM_EXP,
    VARIANCE,
    BILINEAR,
)
