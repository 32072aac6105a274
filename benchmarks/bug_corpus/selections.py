# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Functions that pick values out: dropout, embedding, pooling, concatenation, clipping."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# Inverted dropout


def dropout_forward(x, p=0.5, rng=None, *, training=True):
    if not training or p == 0:
        return x, (None, p)
    rng = np.random.default_rng(7) if rng is None else rng
    mask = rng.random(x.shape, dtype=np.float32) >= p
    keep = 1 - p if p < 1 else np.inf
    return x * mask / keep, (mask, p)


def dropout_backward(dy, cache):
    mask, p = cache
    if mask is None:
        return dy
    return dy * mask / (1 - p) if p < 1 else np.zeros_like(dy)


def dropout_mask_forgotten(dy, cache):
    mask, p = cache
    if mask is None:
        return dy
    return dy / (1 - p) if p < 1 else np.zeros_like(dy)


def dropout_scale_forgotten(dy, cache):
    mask, p = cache
    if mask is None:
        return dy
    return dy * mask


def dropout_scaled_twice(dy, cache):
    mask, p = cache
    if mask is None:
        return dy
    return dy * mask / (1 - p) ** 2 if p < 1 else np.zeros_like(dy)


def dropout_mask_upside_down(dy, cache):
    mask, p = cache
    if mask is None:
        return dy
    return dy * ~mask / (1 - p) if p < 1 else np.zeros_like(dy)


DROPOUT = Exercise(
    "dropout",
    dropout_forward,
    dropout_backward,
    lambda rng: (rng.normal(size=(5, 6)),),
    (
        Bug(
            dropout_mask_forgotten,
            "the mask is forgotten",
            kinds("mask forgotten", "factor missing"),
            ("x",),
            ("mask",),
        ),
        Bug(
            dropout_scale_forgotten,
            "1/(1 − p) is forgotten",
            kinds("scale missing", "scaled"),
            ("x",),
        ),
        Bug(
            dropout_scaled_twice,
            "1/(1 − p) twice",
            kinds("scaled", "extra factor"),
            ("x",),
        ),
        Bug(
            dropout_mask_upside_down,
            "the values that were dropped get the gradient",
            kinds("wrong branch"),
            ("x",),
            ("mask",),
        ),
    ),
    like="dropout",
)

# Embedding


def embedding_forward(tokens, weight):
    return weight[tokens], (tokens, weight.shape)


def embedding_backward(dy, cache):
    tokens, shape = cache
    dW = np.zeros(shape, dtype=dy.dtype)
    np.add.at(dW, tokens, dy)
    return dW


def embedding_assigned(dy, cache):
    tokens, shape = cache
    dW = np.zeros(shape, dtype=dy.dtype)
    dW[tokens] = dy
    return dW


def embedding_fancy_plus(dy, cache):
    tokens, shape = cache
    dW = np.zeros_like(dy, shape=shape)
    dW[tokens.reshape(-1)] += dy.reshape(-1, shape[1])
    return dW


def embedding_averaged(dy, cache):
    tokens, shape = cache
    dW = np.zeros(shape, dtype=dy.dtype)
    np.add.at(dW, tokens, dy)
    counts = np.bincount(tokens.ravel(), minlength=shape[0])
    return dW / np.maximum(counts, 1)[:, None].astype(dy.dtype)


EMBEDDING = Exercise(
    "embedding",
    embedding_forward,
    embedding_backward,
    lambda rng: (np.array([[2, 0, 2], [1, 5, 0]]), rng.normal(size=(7, 3))),
    (
        Bug(
            embedding_assigned,
            "assigned: of a token that occurs twice only the last counts",
            kinds("some rows", "term missing"),
            ("weight",),
        ),
        Bug(
            embedding_fancy_plus,
            "+= on a fancy index adds once per row, however often it occurs",
            kinds("some rows", "term missing"),
            ("weight",),
        ),
        Bug(
            embedding_averaged,
            "the mean over the positions of a token, not the sum",
            kinds("mean for sum", "some rows", "extra factor"),
            ("weight",),
        ),
    ),
    like="embedding",
)


def padded_embedding_forward(tokens, weight):
    """Row 0 is padding: it is looked up as zeros."""
    return weight[tokens] * (tokens != 0)[..., None], (tokens, weight)


def padded_embedding_backward(dy, cache):
    tokens, weight = cache
    onehot = np.eye(len(weight), dtype=dy.dtype)[tokens.ravel()]
    dW = onehot.T @ dy.reshape(-1, dy.shape[-1])
    dW[0] = 0
    return dW


def padding_row_learns(dy, cache):
    tokens, weight = cache
    onehot = np.eye(len(weight), dtype=dy.dtype)[tokens.ravel()]
    return onehot.T @ dy.reshape(-1, dy.shape[-1])


PADDED_EMBEDDING = Exercise(
    "embedding with a padding row",
    padded_embedding_forward,
    padded_embedding_backward,
    lambda rng: (np.array([[2, 0, 3], [1, 4, 0]]), rng.normal(size=(6, 3))),
    (
        Bug(
            padding_row_learns,
            "the padding row gets a gradient",
            kinds("some rows", "mask forgotten", "masked rows"),
            ("weight",),
            ("0",),
        ),
    ),
)

# Pooling, 2 by 2


def maxpool_forward(x):
    N, C, H, W = x.shape
    x = x[:, :, : H // 2 * 2, : W // 2 * 2]
    blocks = x.reshape(N, C, H // 2, 2, W // 2, 2)
    out = blocks.max(axis=3).max(axis=4)
    flat = blocks.transpose(0, 1, 2, 4, 3, 5).reshape(N, C, H // 2, W // 2, 4)
    return out, (x, out, flat.argmax(-1), (H, W))


def maxpool_backward(dout, cache):
    x, out, winner, (H, W) = cache
    N, C, HO, WO = dout.shape
    dx = np.zeros((N, C, H, W), dtype=dout.dtype)
    for i in range(HO):
        for j in range(WO):
            for k in range(4):
                here = dx[:, :, 2 * i + k // 2, 2 * j + k % 2]
                here += dout[:, :, i, j] * (winner[:, :, i, j] == k)
    return dx


def maxpool_all_ties(dout, cache):
    x, out, winner, (H, W) = cache
    N, C = x.shape[:2]
    dx = np.zeros((N, C, H, W), dtype=dout.dtype)
    big = out.repeat(2, axis=2).repeat(2, axis=3)
    dbig = dout.repeat(2, axis=2).repeat(2, axis=3)
    dx[:, :, : big.shape[2], : big.shape[3]] = dbig * (x == big)
    return dx


def maxpool_row_and_column_swapped(dout, cache):
    x, out, winner, (H, W) = cache
    N, C, HO, WO = dout.shape
    dx = np.zeros((N, C, H, W), dtype=dout.dtype)
    for i in range(HO):
        for j in range(WO):
            for k in range(4):
                here = dx[:, :, 2 * i + k % 2, 2 * j + k // 2]
                here += dout[:, :, i, j] * (winner[:, :, i, j] == k)
    return dx


def maxpool_to_everyone(dout, cache):
    x, out, winner, (H, W) = cache
    N, C = x.shape[:2]
    dx = np.zeros((N, C, H, W), dtype=dout.dtype)
    dx[:, :, : 2 * dout.shape[2], : 2 * dout.shape[3]] = dout.repeat(2, 2).repeat(2, 3)
    return dx


MAX_POOL = Exercise(
    "max pooling, 2 by 2",
    maxpool_forward,
    maxpool_backward,
    lambda rng: (rng.permutation(2 * 4 * 6).reshape(1, 2, 4, 6) / 10.0 - 2.05,),
    (
        Bug(
            maxpool_row_and_column_swapped,
            "row and column within the window are exchanged",
            kinds("transposed", "axes permuted", "operands swapped"),
            ("x",),
        ),
        Bug(
            maxpool_to_everyone,
            "every value of the window gets the gradient, not the winner alone",
            kinds("mask forgotten", "factor missing"),
            ("x",),
        ),
    ),
)


def relu_maxpool_forward(x):
    return maxpool_forward(np.maximum(x, 0))


def relu_maxpool_backward(dout, cache):
    return maxpool_backward(dout, cache) * (cache[0] > 0)


def relu_maxpool_all_ties(dout, cache):
    return maxpool_all_ties(dout, cache)


RELU_MAX_POOL = Exercise(
    "max pooling after ReLU, where windows of zeros tie",
    relu_maxpool_forward,
    relu_maxpool_backward,
    lambda rng: ((rng.permutation(2 * 2 * 4 * 4).reshape(2, 2, 4, 4) - 44.5) / 10.0,),
    (
        Bug(
            relu_maxpool_all_ties,
            "x == max in a window of zeros is true four times, and ReLU's mask is left out",
            kinds("mask forgotten", "masked rows"),
            ("x",),
            ("x ≤ 0", "x > 0"),
        ),
    ),
)


def avgpool_forward(x, k=2):
    N, C, H, W = x.shape
    out = np.zeros((N, C, H // k, W // k), dtype=x.dtype)
    for i in range(H // k):
        for j in range(W // k):
            out[:, :, i, j] = x[:, :, k * i : k * i + k, k * j : k * j + k].mean(axis=(2, 3))
    return out, (x.shape, k)


def avgpool_backward(dout, cache):
    shape, k = cache
    dx = np.zeros(shape, dtype=dout.dtype)
    for i in range(dout.shape[2]):
        for j in range(dout.shape[3]):
            share = dout[:, :, i, j][:, :, None, None] / (k * k)
            dx[:, :, k * i : k * i + k, k * j : k * j + k] += share
    return dx


def avgpool_not_divided(dout, cache):
    shape, k = cache
    dx = np.zeros(shape, dtype=dout.dtype)
    for i in range(dout.shape[2]):
        for j in range(dout.shape[3]):
            dx[:, :, k * i : k * i + k, k * j : k * j + k] += dout[:, :, i, j][:, :, None, None]
    return dx


AVG_POOL = Exercise(
    "average pooling, 2 by 2",
    avgpool_forward,
    avgpool_backward,
    lambda rng: (rng.normal(size=(2, 3, 6, 10)),),
    (
        Bug(
            avgpool_not_divided,
            "1/k² is forgotten",
            kinds("scaled", "scale missing", "factor missing", "sum for mean"),
            ("x",),
            ("4", "count"),
        ),
    ),
)

# Concatenation and clipping


def concat_forward(a, b):
    return np.concatenate([a, b], axis=1), a.shape[1]


def concat_backward(dy, split):
    da, db = np.split(dy, [split], axis=1)
    return da, db


def concat_swapped(dy, split):
    db, da = np.split(dy, [split], axis=1)
    return da, db


CONCATENATE = Exercise(
    "concatenation",
    concat_forward,
    concat_backward,
    lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))),
    (
        Bug(
            concat_swapped,
            "the halves come back in each other's place",
            kinds("gradients swapped"),
            ("a", "b"),
        ),
    ),
)


def clip_forward(x):
    return np.clip(x, -1, 1), x


def clip_backward(dy, x):
    return dy * (np.abs(x) < 1)


def clip_one_side(dy, x):
    return dy * (x < 1)


CLIP = Exercise(
    "clipping",
    clip_forward,
    clip_backward,
    lambda rng: (rng.normal(size=(5, 6)) * 1.5,),
    (
        Bug(
            clip_one_side,
            "values below −1 get a gradient",
            kinds("mask forgotten", "masked rows"),
            ("x",),
        ),
    ),
)

EXERCISES = (
    DROPOUT,
    EMBEDDING,
    PADDED_EMBEDDING,
    MAX_POOL,
    RELU_MAX_POOL,
    AVG_POOL,
    CONCATENATE,
    CLIP,
)
