# mypy: ignore-errors
"""Attention with its biases, masks and heads; a bias of the keys has a gradient of 0."""

from __future__ import annotations

import numpy as np

from tests.checking.right_passes.case import Case, normal


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def plain(q, k, v):
    p = softmax(q @ k.T / np.sqrt(q.shape[1]))
    return p @ v, (q, k, v, p)


def plain_back(dy, cache):
    q, k, v, p = cache
    dp = dy @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[1])
    return ds @ k, ds.T @ q, p.T @ dy


def with_key_bias(x, wq, wk, bk):
    q, k = x @ wq, x @ wk + bk
    p = softmax(q @ k.T)
    return p @ x, (x, wq, wk, q, k, p)


def with_key_bias_back(dy, cache):
    x, wq, wk, q, k, p = cache
    dp = dy @ x.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    dq, dk = ds @ k, ds.T @ q
    dx = p.T @ dy + dq @ wq.T + dk @ wk.T
    return dx, x.T @ dq, x.T @ dk, dk.sum(0)


class Saved:
    """The values that forward keeps, as attributes."""


def with_key_bias_saved(x, wk, bk, scale=1000.0):
    c = Saved()
    c.x, c.wk, c.scale = scale * x, wk, scale
    c.k = c.x @ wk / scale + bk
    c.p = softmax(x @ c.k.T)
    c.x0 = x
    return c.p @ c.x, c


def with_key_bias_saved_back(dy, c):
    dp = dy @ c.x.T
    ds = c.p * (dp - (dp * c.p).sum(-1, keepdims=True))
    dk = ds.T @ c.x0
    dx = c.scale * (c.p.T @ dy) + ds @ c.k + dk @ c.wk.T
    return dx, c.x0.T @ dk, dk.sum(0)


def causal(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    s = np.where(np.tril(np.ones(s.shape, bool)), s, -np.inf)
    p = softmax(s)
    return p @ v, (q, k, v, p)


def causal_back(dy, cache):
    q, k, v, p = cache
    dp = dy @ v.T
    ds = p * (dp - np.sum(dp * p, -1, keepdims=True))
    ds /= np.sqrt(q.shape[-1])
    return ds @ k, ds.T @ q, p.T @ dy


def heads(x, wqkv, wo):
    b, t, d = x.shape
    h = 2
    q, k, v = ((x @ w).reshape(b, t, h, d // h).transpose(0, 2, 1, 3) for w in np.split(wqkv, 3, 1))
    p = softmax(q @ k.swapaxes(-1, -2) * (d // h) ** -0.5)
    o = (p @ v).transpose(0, 2, 1, 3).reshape(b, t, d)
    return o @ wo, (x, wqkv, wo, q, k, v, p, o)


def heads_back(dy, cache):
    x, wqkv, wo, q, k, v, p, o = cache
    b, t, d = x.shape
    h = q.shape[1]
    dwo = o.reshape(-1, d).T @ dy.reshape(-1, d)
    do = (dy @ wo.T).reshape(b, t, h, d // h).transpose(0, 2, 1, 3)
    dv = p.swapaxes(-1, -2) @ do
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * (d // h) ** -0.5
    dq, dk = ds @ k, ds.swapaxes(-1, -2) @ q
    merged = [g.transpose(0, 2, 1, 3).reshape(b, t, d) for g in (dq, dk, dv)]
    dqkv = np.concatenate(merged, -1)
    return dqkv @ wqkv.T, x.reshape(-1, d).T @ dqkv.reshape(-1, 3 * d), dwo


def head_bias(x, b):
    p = softmax(x + b[:, None, None])
    return p * b[:, None, None], (p, b)


def head_bias_back(dy, cache):
    p, b = cache
    dp = dy * b[:, None, None]
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    return ds, ds.sum((1, 2)) + (dy * p).sum((1, 2))


def additive(q, k, w):
    h = np.tanh(q[:, None] + k[None])
    p = softmax(h @ w)
    return p, (h, w, p)


def additive_back(dp, cache):
    h, w, p = cache
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    dh = ds[..., None] * w * (1 - h * h)
    return dh.sum(1), dh.sum(0), np.einsum("qk,qkd->d", ds, h)


def shifted_softmax(x, shift):
    p = softmax(x + shift)
    return p, p


def shifted_softmax_back(dp, p):
    dx = p * (dp - (dp * p).sum(-1, keepdims=True))
    return dx, dx.sum(-1, keepdims=True)


def position_bias(q, k, table):
    n = len(q)
    rel = np.arange(n)[:, None] - np.arange(n)[None] + n - 1
    p = softmax(q @ k.T + table[rel])
    return p, (q, k, p, rel, table.shape)


def position_bias_back(dp, cache):
    q, k, p, rel, shape = cache
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    dtable = np.zeros(shape)
    np.add.at(dtable, rel, ds)
    return ds @ k, ds.T @ q, dtable


def rotary(x):
    t, d = x.shape
    angle = np.arange(t)[:, None] / 10000 ** (np.arange(d // 2) / (d // 2))
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[:, ::2], x[:, 1::2]
    y = np.empty_like(x)
    y[:, ::2], y[:, 1::2] = a * c - b * s, a * s + b * c
    return y, (c, s)


def rotary_back(dy, cache):
    c, s = cache
    dx = np.empty_like(dy)
    dx[:, ::2] = dy[:, ::2] * c + dy[:, 1::2] * s
    dx[:, 1::2] = dy[:, 1::2] * c - dy[:, ::2] * s
    return dx


CASES = (
    Case(plain, plain_back, normal((4, 3), (5, 3), (5, 2)), ("p.T @ dy", "-p.T @ dy")),
    Case(
        with_key_bias,
        with_key_bias_back,
        normal((5, 4), (4, 3), (4, 3), 3),
        (", dk.sum(0)", ", dq.sum(0)"),
    ),
    Case(
        with_key_bias_saved,
        with_key_bias_saved_back,
        normal((5, 4), (4, 4), 4),
        (" + dk @ c.wk.T", ""),
    ),
    Case(
        causal, causal_back, normal((5, 3), (5, 3), (5, 2)), ("ds /= np.sqrt(q.shape[-1])", "pass")
    ),
    Case(heads, heads_back, normal((2, 3, 4), (4, 12), (4, 4)), (" * (d // h) ** -0.5", "")),
    Case(head_bias, head_bias_back, normal((2, 3, 3), 2), (" + (dy * p).sum((1, 2))", "")),
    Case(
        head_bias,
        head_bias_back,
        lambda rng: (rng.standard_normal((2, 3, 3)), np.ones(2)),
        ("return ds,", "return dp,"),
        label="head_bias_of_ones",
    ),
    Case(additive, additive_back, normal((3, 4), (5, 4), 4), ("(1 - h * h)", "(1 - h)")),
    Case(shifted_softmax, shifted_softmax_back, normal((4, 5), (4, 1)), ("(dp - ", "(dp + ")),
    Case(
        position_bias,
        position_bias_back,
        normal((4, 3), (4, 3), 7),
        ("np.add.at(dtable, rel, ds)", "dtable[rel] = ds"),
    ),
    Case(rotary, rotary_back, normal((5, 4)), ("* c - dy", "* c + dy")),
)
