# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Softmax with its Jacobian, cross-entropy, squared errors, log-sum-exp."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# Softmax


def softmax_forward(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    p = e / e.sum(axis=axis, keepdims=True)
    return p, (p, axis)


def softmax_backward(dp, cache):
    p, axis = cache
    return p * dp - p * (p * dp).sum(axis=axis, keepdims=True)


def softmax_diagonal_only(dp, cache):
    p, axis = cache
    return dp * p * (1 - p)


def softmax_without_sum_term(dp, cache):
    p, axis = cache
    return p * dp


def softmax_sum_over_the_other_axis(dp, cache):
    p, axis = cache
    return p * (dp - np.sum(dp * p, axis=0, keepdims=True))


def softmax_sum_of_dp_alone(dp, cache):
    p, axis = cache
    return p * (dp - dp.sum(axis=axis, keepdims=True))


SOFTMAX = Exercise(
    "softmax",
    softmax_forward,
    softmax_backward,
    lambda rng: (rng.normal(size=(4, 5)),),
    (
        Bug(
            softmax_diagonal_only,
            "p (1 − p): only the diagonal of the Jacobian; the sum over the row is not taken",
            kinds("not reduced", "term missing", "other derivative"),
            ("x",),
        ),
        Bug(softmax_without_sum_term, "the Σ term is left out", kinds("term missing"), ("x",)),
        Bug(
            softmax_sum_over_the_other_axis,
            "the sum runs over the batch instead of the classes",
            kinds("wrong axis"),
            ("x",),
        ),
        Bug(
            softmax_sum_of_dp_alone,
            "Σ dy where Σ y dy belongs",
            kinds("factor missing"),
            ("x",),
            ("y", "p"),
        ),
    ),
    like="softmax",
)


def softmax_by_jacobian(dp, cache):
    p, axis = cache
    rows = p.reshape(-1, p.shape[-1])
    dx = np.empty_like(rows)
    for i, (row, d) in enumerate(zip(rows, dp.reshape(rows.shape), strict=True)):
        jacobian = np.diag(row) - np.outer(row, row)
        dx[i] = jacobian @ d
    return dx.reshape(p.shape)


def softmax_jacobian_plus(dp, cache):
    p, axis = cache
    rows = p.reshape(-1, p.shape[-1])
    dx = np.empty_like(rows)
    for i, (row, d) in enumerate(zip(rows, dp.reshape(rows.shape), strict=True)):
        jacobian = np.diag(row) + np.outer(row, row)
        dx[i] = jacobian @ d
    return dx.reshape(p.shape)


SOFTMAX_JACOBIAN = Exercise(
    "softmax by its Jacobian",
    lambda x: softmax_forward(x),
    softmax_by_jacobian,
    lambda rng: (rng.normal(size=(4, 5)),),
    (
        Bug(
            softmax_jacobian_plus,
            "diag(p) + p pᵀ: the sign of the outer product",
            kinds("wrong sign"),
            ("x",),
        ),
    ),
    like="softmax",
)


def log_softmax_forward(x):
    shifted = x - x.max(axis=1, keepdims=True)
    y = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return y, y


def log_softmax_backward(dy, y):
    return dy - np.exp(y) * dy.sum(axis=1, keepdims=True)


def log_softmax_as_softmax(dy, y):
    p = np.exp(y)
    return p * (dy - (p * dy).sum(axis=1, keepdims=True))


def log_softmax_without_sum(dy, y):
    return dy - np.exp(y) * dy


LOG_SOFTMAX = Exercise(
    "log-softmax",
    log_softmax_forward,
    log_softmax_backward,
    lambda rng: (rng.normal(size=(4, 6)),),
    (
        Bug(
            log_softmax_as_softmax,
            "the backward of softmax",
            kinds("extra factor"),
            ("x",),
        ),
        Bug(
            log_softmax_without_sum,
            "dy is not summed over the classes",
            kinds("not reduced"),
            ("x",),
        ),
    ),
)

# Cross-entropy of class indices, mean over the batch


def xent_forward(x, target):
    n = x.shape[0]
    z = x - x.max(axis=1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    loss = -logp[np.arange(n), target].mean()
    return loss, (np.exp(logp), target)


def xent_backward(dloss, cache):
    p, target = cache
    dx = p.copy()
    dx[np.arange(len(p)), target] -= 1
    return dx * (dloss / len(p))


def xent_sign(dloss, cache):
    p, target = cache
    onehot = np.zeros_like(p)
    onehot[np.arange(len(p)), target] = 1
    return dloss * (onehot - p) / len(p)


def xent_not_divided_by_n(dloss, cache):
    p, target = cache
    dx = p.copy()
    dx[np.arange(len(p)), target] -= 1
    return dloss * dx


def xent_ignores_dloss(dloss, cache):
    p, target = cache
    dx = p.copy()
    dx[np.arange(len(p)), target] -= 1
    dx /= len(p)
    return dx


def xent_without_onehot(dloss, cache):
    p, target = cache
    return dloss * p / len(p)


def xent_divided_by_all_values(dloss, cache):
    p, target = cache
    onehot = np.eye(p.shape[1], dtype=p.dtype)[target]
    return dloss * (p - onehot) / p.size


CROSS_ENTROPY = Exercise(
    "softmax and cross-entropy",
    xent_forward,
    xent_backward,
    lambda rng: (rng.normal(size=(6, 5)), rng.integers(0, 5, 6)),
    (
        Bug(xent_sign, "onehot − p: the sign of the whole", kinds("wrong sign"), ("x",)),
        Bug(
            xent_not_divided_by_n,
            "a mean over the batch whose 1/N is forgotten",
            kinds("scaled", "scale missing", "sum for mean"),
            ("x",),
        ),
        Bug(
            xent_ignores_dloss,
            "the cotangent is not used at all",
            kinds("factor missing", "scale missing"),
            ("x",),
            ("dloss", "dy", "cotangent"),
        ),
        Bug(xent_without_onehot, "the onehot is not taken off", kinds("term missing"), ("x",)),
        Bug(
            xent_divided_by_all_values,
            "divided by N·C where N belongs",
            kinds("scaled", "mean for sum"),
            ("x",),
            ("5",),
        ),
    ),
    like="cross_entropy",
)


def masked_xent_forward(x, target, ignore_index=-100):
    keep = target != ignore_index
    z = x - x.max(axis=1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    picked = logp[np.arange(len(x)), np.where(keep, target, 0)]
    count = max(int(keep.sum()), 1)
    return -(picked * keep).sum() / count, (np.exp(logp), target, keep, count)


def masked_xent_backward(dloss, cache):
    p, target, keep, count = cache
    dx = p.copy()
    dx[np.arange(len(p)), np.where(keep, target, 0)] -= 1
    dx *= keep[:, None]
    return dx * (dloss / count)


def masked_xent_padding_counts(dloss, cache):
    p, target, keep, count = cache
    dx = p.copy()
    dx[np.arange(len(p)), np.where(keep, target, 0)] -= 1
    return dx * (dloss / count)


def masked_xent_divides_by_all_rows(dloss, cache):
    p, target, keep, count = cache
    dx = p.copy()
    dx[np.arange(len(p)), np.where(keep, target, 0)] -= 1
    dx *= keep[:, None]
    return dx * (dloss / len(p))


MASKED_CROSS_ENTROPY = Exercise(
    "cross-entropy with padding",
    masked_xent_forward,
    masked_xent_backward,
    lambda rng: (rng.normal(size=(6, 4)), np.array([2, -100, 0, 3, -100, 1])),
    (
        Bug(
            masked_xent_padding_counts,
            "padded rows get a gradient too",
            kinds("masked rows", "mask forgotten", "some rows"),
            ("x",),
        ),
        Bug(
            masked_xent_divides_by_all_rows,
            "divided by the number of rows, padding included",
            kinds("scaled"),
            ("x",),
        ),
    ),
    like="cross_entropy",
)


def smooth_xent_forward(x, target, eps=0.1):
    n, c = x.shape
    q = np.full((n, c), eps / c, dtype=x.dtype)
    q[np.arange(n), target] += 1 - eps
    z = x - x.max(axis=1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -(q * logp).sum() / n, (np.exp(logp), q, target)


def smooth_xent_backward(dloss, cache):
    p, q, target = cache
    return dloss * (p - q) / len(p)


def smooth_xent_hard_targets(dloss, cache):
    p, q, target = cache
    onehot = np.eye(p.shape[1], dtype=p.dtype)[target]
    return dloss * (p - onehot) / len(p)


SMOOTH_CROSS_ENTROPY = Exercise(
    "cross-entropy with label smoothing",
    smooth_xent_forward,
    smooth_xent_backward,
    lambda rng: (rng.normal(size=(5, 4)), rng.integers(0, 4, 5)),
    (
        Bug(
            smooth_xent_hard_targets,
            "backward uses the targets before smoothing",
            kinds("stale variable"),
            ("x",),
            ("q",),
        ),
    ),
)

# Squared error, and binary cross-entropy on logits


def mse_forward(x, target):
    diff = x - target
    return np.mean(diff**2), diff


def mse_backward(dy, diff):
    return dy * 2 * diff / diff.size


def mse_without_2(dy, diff):
    return dy * diff / diff.size


def mse_over_batch_only(dy, diff):
    return dy * 2.0 * diff / diff.shape[0]


SQUARED_ERROR = Exercise(
    "mean squared error",
    mse_forward,
    mse_backward,
    lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
    (
        Bug(mse_without_2, "the 2 is missing", kinds("scaled", "scale missing"), ("x",)),
        Bug(
            mse_over_batch_only,
            "divided by N, though forward takes the mean over all N·D values",
            kinds("scaled", "scale missing", "sum for mean"),
            ("x",),
            ("3", "5"),
        ),
    ),
    like="squared_error",
    wrt=("x",),
)


def bce_forward(x, target):
    loss = np.maximum(x, 0) - x * target + np.log1p(np.exp(-np.abs(x)))
    return loss.mean(), (0.5 * (1 + np.tanh(x / 2)), target)


def bce_backward(dy, cache):
    p, t = cache
    return dy * (p - t) / p.size


def bce_with_sigmoid_derivative(dy, cache):
    p, t = cache
    return dy * (p - t) * p * (1 - p) / p.size


BINARY_CROSS_ENTROPY = Exercise(
    "binary cross-entropy on logits",
    bce_forward,
    bce_backward,
    lambda rng: (rng.normal(size=(4, 3)), rng.uniform(size=(4, 3))),
    (
        Bug(
            bce_with_sigmoid_derivative,
            "p − t times σ′ once more, which it contains already",
            kinds("extra factor"),
            ("x",),
        ),
    ),
    like="binary_cross_entropy",
    wrt=("x",),
)

EXERCISES = (
    SOFTMAX,
    SOFTMAX_JACOBIAN,
    LOG_SOFTMAX,
    CROSS_ENTROPY,
    MASKED_CROSS_ENTROPY,
    SMOOTH_CROSS_ENTROPY,
    SQUARED_ERROR,
    BINARY_CROSS_ENTROPY,
)
