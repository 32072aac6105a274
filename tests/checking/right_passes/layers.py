# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Layers as functions: products, normalisations, dropout, embeddings, convolutions, pooling."""

from __future__ import annotations

import numpy as np

from tests.checking.right_passes.case import Case, normal


def affine(x, w, b):
    out = x.reshape(x.shape[0], -1).dot(w) + b
    return out, (x, w, b)


def affine_back(dout, cache):
    x, w, b = cache
    dx = dout.dot(w.T).reshape(x.shape)
    dw = x.reshape(x.shape[0], -1).T.dot(dout)
    return dx, dw, np.sum(dout, axis=0)


def affine_relu(x, w, b):
    a = x @ w + b
    out = np.maximum(0, a)
    return out, (x, w, a)


def affine_relu_back(dout, cache):
    x, w, a = cache
    da = np.where(a > 0, dout, 0)
    return da @ w.T, x.T @ da, da.sum(0)


def bias_column(x, theta):
    ones = np.ones((x.shape[0], 1))
    xb = np.hstack([ones, x])
    return xb @ theta, (xb, theta)


def bias_column_back(dy, cache):
    xb, theta = cache
    return (dy @ theta.T)[:, 1:], xb.T @ dy


def column_vectors(w, a, b):
    z = np.dot(w, a) + b
    return 1 / (1 + np.exp(-z)), (w, a, 1 / (1 + np.exp(-z)))


def column_vectors_back(d, cache):
    w, a, s = cache
    dz = d * s * (1 - s)
    return np.dot(dz, a.T), np.dot(w.T, dz), np.sum(dz, axis=1, keepdims=True)


def layer_norm(x, gamma, beta):
    mu = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    std = np.sqrt(var + 1e-5)
    xn = (x - mu) / std
    return gamma * xn + beta, (xn, std, gamma)


def layer_norm_back(dy, cache):
    xn, std, gamma = cache
    axes = tuple(range(dy.ndim - 1))
    d = dy * gamma
    n = d.shape[-1]
    dx = (n * d - d.sum(-1, keepdims=True) - xn * (d * xn).sum(-1, keepdims=True)) / (n * std)
    return dx, (dy * xn).sum(axes), dy.sum(axes)


def batch_norm(x, gamma, beta):
    mu = np.mean(x, axis=0)
    xmu = x - mu
    var = np.mean(xmu**2, axis=0)
    sqrtvar = np.sqrt(var + 1e-5)
    ivar = 1.0 / sqrtvar
    xhat = xmu * ivar
    return gamma * xhat + beta, (xhat, gamma, xmu, ivar, sqrtvar, var)


def batch_norm_back(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var = cache
    n = dout.shape[0]
    dbeta = np.sum(dout, axis=0)
    dgamma = np.sum(dout * xhat, axis=0)
    dxhat = dout * gamma
    divar = np.sum(dxhat * xmu, axis=0)
    dxmu1 = dxhat * ivar
    dsqrtvar = -1.0 / (sqrtvar**2) * divar
    dvar = 0.5 / np.sqrt(var + 1e-5) * dsqrtvar
    dsq = np.ones(dout.shape) / n * dvar
    dx1 = dxmu1 + 2 * xmu * dsq
    dmu = -np.sum(dx1, axis=0)
    return dx1 + np.ones(dout.shape) / n * dmu, dgamma, dbeta


def dense_before_batch_norm(x, w, b):
    z = x @ w + b
    c = z - z.mean(0)
    s = 1 / np.sqrt((c**2).mean(0) + 1e-5)
    return c * s, (x, w, c * s, s)


def dense_before_batch_norm_back(dy, cache):
    x, w, h, s = cache
    dz = s * (dy - dy.mean(0) - h * (dy * h).mean(0))
    return dz @ w.T, x.T @ dz, dz.sum(0)


def spatial_batch_norm(x, gamma, beta):
    mu = x.mean((0, 2, 3), keepdims=True)
    var = x.var((0, 2, 3), keepdims=True)
    s = 1 / np.sqrt(var + 1e-5)
    h = (x - mu) * s
    return gamma[None, :, None, None] * h + beta[None, :, None, None], (h, s, gamma)


def spatial_batch_norm_back(dy, cache):
    h, s, gamma = cache
    ax = (0, 2, 3)
    d = dy * gamma[:, None, None]
    dx = s * (d - d.mean(ax, keepdims=True) - h * (d * h).mean(ax, keepdims=True))
    return dx, (dy * h).sum(ax), dy.sum(ax)


def group_norm(x, gamma):
    n, c, h, w = x.shape
    g = x.reshape(n, 2, -1)
    m = g.mean(-1, keepdims=True)
    s = 1 / np.sqrt(((g - m) ** 2).mean(-1, keepdims=True) + 1e-5)
    xh = ((g - m) * s).reshape(x.shape)
    return xh * gamma.reshape(1, c, 1, 1), (xh, s, gamma)


def group_norm_back(dy, cache):
    xh, s, gamma = cache
    n = dy.shape[0]
    d = (dy * gamma.reshape(1, -1, 1, 1)).reshape(n, 2, -1)
    h = xh.reshape(n, 2, -1)
    dx = s * (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True))
    return dx.reshape(dy.shape), (dy * xh).sum((0, 2, 3))


def rms_norm(x, g):
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return x * r * g, (x, r, g)


def rms_norm_back(dy, cache):
    x, r, g = cache
    d = dy * g
    return r * d - x * r**3 * (d * x).mean(-1, keepdims=True), (dy * x * r).sum(0)


def dropout_with_mask(x, mask):
    return x * mask / 0.8, mask


def dropout_with_mask_back(dy, mask):
    return dy * mask / 0.8


def dropout_seeded(x):
    mask = (np.random.default_rng(3).random(x.shape) < 0.7) / 0.7
    return x * mask, mask


def dropout_seeded_back(dy, mask):
    return dy * mask


def embedding(table, tokens):
    return table[tokens], (table.shape, tokens)


def embedding_back(dy, cache):
    shape, tokens = cache
    dt = np.zeros(shape)
    for i, t in enumerate(tokens.ravel()):
        dt[t] += dy.reshape(-1, shape[1])[i]
    return dt


def embedding_one_hot(table, tokens):
    hot = np.eye(table.shape[0])[tokens]
    return hot @ table, hot


def embedding_one_hot_back(dy, hot):
    return np.tensordot(hot, dy, axes=([0, 1], [0, 1]))


def im2col(x, k):
    n, c, h, w = x.shape
    cols = [x[:, :, i : i + h - k + 1, j : j + w - k + 1] for i in range(k) for j in range(k)]
    return np.stack(cols, axis=2)


def conv_im2col(x, w, b):
    k = w.shape[2]
    cols = im2col(x, k)
    wk = w.reshape(w.shape[0], w.shape[1], -1)
    y = np.einsum("ncphw,ocp->nohw", cols, wk) + b[:, None, None]
    return y, (x.shape, cols, w)


def conv_im2col_back(dy, cache):
    shape, cols, w = cache
    k = w.shape[2]
    wk = w.reshape(w.shape[0], w.shape[1], -1)
    dw = np.einsum("nohw,ncphw->ocp", dy, cols).reshape(w.shape)
    dcols = np.einsum("nohw,ocp->ncphw", dy, wk)
    dx = np.zeros(shape)
    oh, ow = dy.shape[2:]
    for p in range(k * k):
        i, j = divmod(p, k)
        dx[:, :, i : i + oh, j : j + ow] += dcols[:, :, p]
    return dx, dw, dy.sum((0, 2, 3))


def conv_loops(x, w, stride=2, pad=1):
    n, c, h, wd = x.shape
    f, _, hh, ww = w.shape
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    ho, wo = 1 + (h + 2 * pad - hh) // stride, 1 + (wd + 2 * pad - ww) // stride
    y = np.zeros((n, f, ho, wo))
    for a in range(n):
        for o in range(f):
            for i in range(ho):
                for j in range(wo):
                    win = xp[a, :, i * stride : i * stride + hh, j * stride : j * stride + ww]
                    y[a, o, i, j] = np.sum(win * w[o])
    return y, (xp, w, stride, pad)


def conv_loops_back(dy, cache):
    xp, w, stride, pad = cache
    n, f, ho, wo = dy.shape
    hh, ww = w.shape[2:]
    dxp, dw = np.zeros_like(xp), np.zeros_like(w)
    for a in range(n):
        for o in range(f):
            for i in range(ho):
                for j in range(wo):
                    rows = slice(i * stride, i * stride + hh)
                    cols = slice(j * stride, j * stride + ww)
                    dw[o] += xp[a, :, rows, cols] * dy[a, o, i, j]
                    dxp[a, :, rows, cols] += w[o] * dy[a, o, i, j]
    return dxp[:, :, pad:-pad, pad:-pad], dw


def conv1d_convolve(x, k):
    return np.convolve(x, k, mode="valid"), (x, k)


def conv1d_convolve_back(dy, cache):
    x, k = cache
    return np.convolve(dy, k[::-1], mode="full"), np.convolve(x[::-1], dy, mode="valid")[: len(k)]


def depthwise(x, w):
    t = x.shape[1] - w.shape[0] + 1
    return sum(x[:, i : i + t] * w[i] for i in range(len(w))), (x, w)


def depthwise_back(dy, cache):
    x, w = cache
    t = dy.shape[1]
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(len(w)):
        dx[:, i : i + t] += dy * w[i]
        dw[i] = (dy * x[:, i : i + t]).sum((0, 1))
    return dx, dw


def average_pool(x):
    n, h, w = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2).mean((2, 4)), None


def average_pool_back(dy, _):
    return np.repeat(np.repeat(dy, 2, 1), 2, 2) / 4


def global_average_pool(x):
    return x.mean((2, 3)), x.shape


def global_average_pool_back(dy, shape):
    return np.broadcast_to(dy[:, :, None, None] / (shape[2] * shape[3]), shape)


def upsample(x):
    return x.repeat(2, axis=-1).repeat(2, axis=-2), x.shape


def upsample_back(dy, shape):
    return dy.reshape(*shape[:-2], shape[-2], 2, shape[-1], 2).sum((-3, -1))


def residual_block(x, w1, w2):
    h = np.tanh(x @ w1)
    return x + h @ w2, (x, w1, w2, h)


def residual_block_back(dy, cache):
    x, w1, w2, h = cache
    dh = (dy @ w2.T) * (1 - h**2)
    return dy + dh @ w1.T, x.T @ dh, h.T @ dy


def highway(x, w, v):
    g = 1 / (1 + np.exp(-x @ v))
    h = np.tanh(x @ w)
    return g * h + (1 - g) * x, (x, w, v, g, h)


def highway_back(dy, cache):
    x, w, v, g, h = cache
    da = dy * g * (1 - h * h)
    db = dy * (h - x) * g * (1 - g)
    return dy * (1 - g) + da @ w.T + db @ v.T, x.T @ da, x.T @ db


def graph_convolution(x, w, adjacency):
    deg = adjacency.sum(1)
    a = adjacency / np.sqrt(np.outer(deg, deg))
    return a @ x @ w, (a, x, w)


def graph_convolution_back(dy, cache):
    a, x, w = cache
    return a.T @ dy @ w.T, (a @ x).T @ dy


def low_rank_adapter(x, w, a, b):
    return x @ w.T + 2.0 * (x @ a.T) @ b.T, (x, w, a, b)


def low_rank_adapter_back(dy, cache):
    x, w, a, b = cache
    dh = 2.0 * dy @ b
    return dy @ w + dh @ a, dy.T @ x, dh.T @ x, 2.0 * dy.T @ (x @ a.T)


def tokens(*shape):
    return lambda rng: (rng.standard_normal((6, 4)), rng.integers(0, 6, shape))


CASES = (
    Case(affine, affine_back, normal((4, 2, 3), (6, 5), 5), ("w.T", "(2 * w.T)")),
    Case(affine_relu, affine_relu_back, normal((4, 3), (3, 5), 5), ("a > 0", "a < 0")),
    Case(bias_column, bias_column_back, normal((5, 3), (4, 2)), ("[:, 1:]", "[:, :-1]")),
    Case(column_vectors, column_vectors_back, normal((4, 3), (3, 6), (4, 1)), ("axis=1", "axis=0")),
    Case(
        column_vectors,
        column_vectors_back,
        normal((4, 3), (3, 4), (4, 1)),
        ("np.dot(dz, a.T)", "-np.dot(dz, a.T)"),
        label="column_vectors_square",
    ),
    Case(layer_norm, layer_norm_back, normal((2, 3, 5), 5, 5), ("- xn *", "+ xn *")),
    Case(batch_norm, batch_norm_back, normal((6, 4), 4, 4), ("2 * xmu", "xmu")),
    Case(
        batch_norm,
        batch_norm_back,
        normal((4, 4), 4, 4),
        ("dmu = -", "dmu = "),
        label="batch_norm_square",
    ),
    Case(
        dense_before_batch_norm,
        dense_before_batch_norm_back,
        normal((6, 4), (4, 3), 3),
        (" - dy.mean(0)", ""),
    ),
    Case(spatial_batch_norm, spatial_batch_norm_back, normal((3, 2, 3, 4), 2, 2), ("- h *", "- ")),
    Case(group_norm, group_norm_back, normal((2, 4, 3, 3), 4), ("s * (d", "(d")),
    Case(rms_norm, rms_norm_back, normal((4, 5), 5), ("r**3", "r**2")),
    Case(
        dropout_with_mask,
        dropout_with_mask_back,
        lambda rng: (rng.standard_normal((4, 5)), rng.random((4, 5)) < 0.8),
        (" / 0.8", ""),
    ),
    Case(dropout_seeded, dropout_seeded_back, normal((4, 5)), ("dy * mask", "dy")),
    Case(embedding, embedding_back, tokens(3, 4), ("+=", "=")),
    Case(embedding_one_hot, embedding_one_hot_back, tokens(3, 4), ("hot, dy", "2 * hot, dy")),
    Case(
        conv_im2col,
        conv_im2col_back,
        normal((2, 3, 5, 5), (4, 3, 3, 3), 4),
        ("divmod(p, k)", "divmod(p, k)[::-1]"),
    ),
    Case(conv_loops, conv_loops_back, normal((2, 2, 5, 5), (3, 2, 3, 3)), ("dw[o] +=", "dw[o] =")),
    Case(conv1d_convolve, conv1d_convolve_back, normal(9, 3), ("k[::-1]", "k")),
    Case(depthwise, depthwise_back, normal((2, 6, 3), (3, 3)), ("+= dy * w[i]", "= dy * w[i]")),
    Case(average_pool, average_pool_back, normal((2, 4, 6)), ("/ 4", "/ 2")),
    Case(
        global_average_pool,
        global_average_pool_back,
        normal((2, 3, 4, 5)),
        ("shape[2] *", "shape[1] *"),
    ),
    Case(upsample, upsample_back, normal((2, 3, 4)), (".sum((-3, -1))", ".mean((-3, -1))")),
    Case(residual_block, residual_block_back, normal((4, 3), (3, 5), (5, 3)), ("dy + dh", "dh")),
    Case(highway, highway_back, normal((4, 3), (3, 3), (3, 3)), ("(h - x)", "h")),
    Case(
        graph_convolution,
        graph_convolution_back,
        lambda rng: (
            rng.standard_normal((4, 3)),
            rng.standard_normal((3, 2)),
            np.eye(4, dtype=int) + np.roll(np.eye(4, dtype=int), 1, 0),
        ),
        ("a.T @ dy", "a @ dy"),
    ),
    Case(
        low_rank_adapter,
        low_rank_adapter_back,
        normal((5, 4), (3, 4), (2, 4), (3, 2)),
        ("dh = 2.0 *", "dh ="),
    ),
)
