"""Functions in the ways in which people write them, and not as this project does."""

# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

from functools import partial

import numpy as np

W0 = np.random.default_rng(3).standard_normal((4, 4))


def helper(x, w, *, scale=2.0):
    z = x @ w
    return z * scale, (x, w)


def rnn(x, wx, wh, b):
    N, T, _D = x.shape
    H = wh.shape[0]
    h = np.zeros((N, T + 1, H))
    for t in range(T):
        a = x[:, t] @ wx + h[:, t] @ wh + b
        h[:, t + 1] = np.tanh(a)
    return h[:, 1:], (x, wx, wh, h)


def rnn_back(dy, cache):
    x, wx, wh, h = cache
    N, T, _D = x.shape
    dx = np.zeros_like(x)
    dwx = np.zeros_like(wx)
    dwh, db = np.zeros_like(wh), np.zeros(wh.shape[0])
    dh_next = np.zeros((N, wh.shape[0]))
    for t in reversed(range(T)):
        dh = dy[:, t] + dh_next
        da = dh * (1 - h[:, t + 1] ** 2)
        dx[:, t] = da @ wx.T
        dwx += x[:, t].T @ da
        dwh += h[:, t].T @ da
        db += da.sum(axis=0)
        dh_next = da @ wh.T
    return dx, dwx, dwh, db


class Net:
    def __init__(self, w):
        self.w = w * 1.0
        self.__b = np.ones(4)
        self.grads = {}

    def forward(self, x):
        self.x = x
        self.a, *_rest = self._layer(x, self.w), 1, 2
        self.mask = self.a > 0
        return np.where(self.mask, self.a, 0.0)

    def _layer(self, x, w):
        return x.dot(w) + self.__b

    def backward(self, dy):
        da = dy.copy()
        da[~self.mask] = 0
        self.grads["w"] = self.x.T @ da
        self.grads["b"] = np.einsum("ij->j", da)
        return da @ self.w.T


def net(x, w):
    n = Net(w)
    y = n.forward(x)
    return y, n.backward(np.ones_like(y) * 0.5), n.grads["w"], n.grads["b"]


def views(x):
    x.reshape(-1)
    a = x.copy()
    b = a[1:]
    c = a.T
    b *= 2
    a[0, 0] = 7
    d = b @ c
    np.add.at(a, [0, 0], 1.0)
    np.multiply(a, 3, out=a)
    return d, c.sum(), a.ravel()


def lists(x):
    ys = []
    for i, (row, other) in enumerate(zip(x, x[::-1], strict=False)):
        (p, [q, *r]) = (row, [other, row * 2, row + i])
        ys.append(p * q + sum(r))
    total = sum(y.sum() for y in ys)
    m = max(abs(y).max() for y in ys)
    z = np.stack([y for y in ys if y.size]) / m
    s = float(total) / len(ys)
    return z * s, list(ys)


def control(x, mode="a"):
    k = 0
    while k < 3:
        x = x + k if mode == "a" else x - k
        k += 1
        if k == 2:
            continue
    try:
        y = np.linalg.cholesky(x @ x.T + np.eye(len(x)))
    except np.linalg.LinAlgError:
        y = x
    match mode:
        case "a":
            y = y * 2
        case _:
            y = y * 3
    with np.errstate(all="ignore"):
        z = y / y.max()

    def f(t):
        return t**2

    g = partial(helper, scale=0.5)
    u, (_p, _q) = g(f(z), W0[: len(z), :3])
    if (n := len(u)) > 1:
        u = u[:, None] @ u[..., None]
    w, v = np.linalg.eigh(x @ x.T)
    lo, hi = np.split(v, 2)
    o = np.outer(w, w)[np.newaxis]
    return u, w, lo, hi, o, np.concatenate([lo, hi], axis=0), {"a": x}


def closure(x):
    scale = x.mean()

    def inner(t, k=2):
        nonlocal scale
        scale = scale + 1
        return t * scale * k

    @partial(lambda f, **k: f)
    def deco(t):
        return t + 1

    return inner(x), deco(x), inner(x)


class Base:
    def forward(self, x):
        return x * 2


class Child(Base):
    def forward(self, x):
        y = super().forward(x)
        return y + 1

    def __call__(self, x):
        return self.forward(x)


def inherit(x):
    c = Child()
    return c(x), c.forward(x)


def bound_methods(x):
    total, add_at = x.sum, np.add.at
    y = x * 2
    add_at(y, [0, 0], 1.0)
    return total(axis=0), y


def summed(values):
    return sum(summed(each) for each in values) if isinstance(values, tuple) else values * 2.0


class Halves:
    def __init__(self, w):
        self.w = w

    @property
    def first(self):
        return self.w[:2]

    def forward(self, x):
        return x @ getattr(self, "first") + self.w[2:].sum()
