"""More right passes, each with the shapes of its inputs and what is planted in it."""

from __future__ import annotations

from typing import Final

Shapes = tuple[tuple[int, ...], ...]

#: Name, text, shapes of the inputs, and pairs of a right and a wrong part of the text.
MORE: Final[dict[str, tuple[str, Shapes, tuple[tuple[str, str], ...]]]] = {
    "cells": (
        """
import numpy as np


def cell(x, h, w, u):
    a = np.tanh(x @ w + h @ u)
    return a, (x, h, a, w, u)


def cell_backward(da, cache):
    x, h, a, w, u = cache
    dz = da * (1 - a * a)
    return {"dx": dz @ w.T, "dh": dz @ u.T, "dw": x.T @ dz, "du": h.T @ dz}


def forward(x, h0, w, u):
    h, caches, out = h0, [], []
    for t in range(x.shape[1]):
        h, cache = cell(x[:, t], h, w, u)
        out.append(h)
        caches.append(cache)
    return np.stack(out, 1), caches


def backward(dy, caches):
    dh = np.zeros_like(dy[:, 0])
    dx = np.zeros((*dy.shape[:2], len(caches[0][3])))
    dw, du = np.zeros_like(caches[0][3]), np.zeros_like(caches[0][4])
    for t in reversed(range(dy.shape[1])):
        g = cell_backward(dy[:, t] + dh, caches[t])
        dx[:, t] = g["dx"]
        dw += g["dw"]
        du += g["du"]
        dh = g["dh"]
    return dx, g["dh"], dw, du
""",
        ((2, 4, 3), (2, 4), (3, 4), (4, 4)),
        (('        du += g["du"]\n        dh = g["dh"]\n', '        du += g["du"]\n'),),
    ),
    "upsampled": (
        """
import numpy as np


def forward(x):
    return x.repeat(2, axis=0).repeat(2, axis=1), None


def backward(dy, cache):
    return (sum(dy[i::2, j::2] for i in range(2) for j in range(2)),)
""",
        ((3, 4),),
        (("sum(dy[i::2, j::2] for i in range(2) for j in range(2))", "dy[::2, ::2]"),),
    ),
    "normalised_rows": (
        """
import numpy as np


def forward(x, gamma):
    inv = 1 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-3)
    x_hat = (x - x.mean(axis=1, keepdims=True)) * inv
    return gamma * x_hat, (x_hat, inv, gamma)


def backward(dy, cache):
    x_hat, inv, gamma = cache
    mean = dy * gamma - (dy * gamma).mean(axis=1, keepdims=True)
    dx = inv * (mean - x_hat * (dy * gamma * x_hat).mean(axis=1, keepdims=True))
    return dx, (dy * x_hat).sum(axis=0)
""",
        ((4, 6), (6,)),
        (
            (
                "dx = inv * (mean - x_hat * (dy * gamma * x_hat).mean(axis=1, keepdims=True))",
                "dx = gamma * inv * (dy - dy.mean(axis=1, keepdims=True)"
                " - x_hat * (dy * x_hat).mean(axis=1, keepdims=True))",
            ),
        ),
    ),
    "weighted": (
        """
import numpy as np

t = np.array([0, 1, 2, 1])
weights = np.array([1.0, 2.0, 5.0])


def forward(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    return -(weights[t] * np.log(p[np.arange(4), t])).sum(), p


def backward(dy, p):
    return (dy * (p - np.eye(3)[t]) * weights[t][:, None],)
""",
        ((4, 3),),
        (("* weights[t][:, None]", "* weights"),),
    ),
    "strided": (
        """
import numpy as np


def forward(x, w):
    return np.array([x[i * 2 : i * 2 + 3] @ w for i in range((len(x) - 3) // 2 + 1)]), (x, w)


def backward(dy, cache):
    x, w = cache
    dx = np.zeros_like(x)
    for i, d in enumerate(dy):
        dx[i * 2 : i * 2 + 3] += d * w
    return dx, np.array([x[k : k + 2 * len(dy) : 2] @ dy for k in range(3)])
""",
        ((9,), (3,)),
        (("x[k : k + 2 * len(dy) : 2]", "x[k * 2 : k * 2 + len(dy)]"),),
    ),
    "elu": (
        """
import numpy as np


def forward(x):
    return np.where(x > 0, x, np.exp(x) - 1), x


def backward(dy, x):
    return (dy * ((x > 0.0) + (x < 0.0) * np.exp(x)),)
""",
        ((4, 5),),
        (("((x > 0.0) + (x < 0.0) * np.exp(x))", "(x > 0.0 + (x < 0.0) * np.exp(x))"),),
    ),
    "smoothed": (
        """
import numpy as np


def forward(x):
    p = x * x
    return np.log(p + 1e-6).sum(), (x, p)


def backward(dy, cache):
    x, p = cache
    return (dy / (p + 1e-6) * 2 * x,)
""",
        ((4, 5),),
        (("(p + 1e-6) * 2", "p * 2"),),
    ),
    "several_weights": (
        """
import numpy as np


def forward(x, *ws):
    h = np.tanh(x @ ws[0])
    y = np.tanh(h @ ws[1])
    return y, (x, h, y, ws)


def backward(dy, cache):
    x, h, y, ws = cache
    da = dy * (1 - y**2)
    dh = da @ ws[1].T * (1 - h**2)
    return dh @ ws[0].T, x.T @ dh, h.T @ da
""",
        ((4, 3), (3, 5), (5, 2)),
        (
            (
                "(1 - y**2)\n    dh = da @ ws[1].T * (1 - h**2)",
                "(1 - y)\n    dh = da @ ws[1].T * (1 - h)",
            ),
        ),
    ),
    "pooled": (
        """
import numpy as np


def forward(x):
    arg = x.argmax(axis=1)
    return x.max(axis=1), (x, arg)


def backward(dy, cache):
    x, arg = cache
    dx = np.zeros_like(x)
    dx[np.arange(len(x)), arg] = dy.ravel()
    return (dx,)
""",
        ((4, 3),),
        (("= dy.ravel()", "= 1"),),
    ),
    "coded": (
        """
import numpy as np


def forward(x, w, v):
    n = len(x)
    mu = x @ w
    r = mu @ v
    return (r**2).sum() / n + 0.5 * (mu**2).sum() / n, (x, w, v, mu, r)


def backward(dy, cache):
    x, w, v, mu, r = cache
    n = len(x)
    dr = dy * 2 * r / n
    dz = dr @ v.T
    dmu = dz + dy * mu / n
    return dmu @ w.T, x.T @ dmu, mu.T @ dr
""",
        ((5, 4), (4, 2), (2, 3)),
        (("dmu = dz + dy * mu / n", "dmu = dz"),),
    ),
    "shared_axes": (
        """
import numpy as np


def summed(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for i, n in enumerate(shape):
        if n == 1:
            g = g.sum(axis=i, keepdims=True)
    return g


def forward(x, a):
    return a * x, (x, a)


def backward(dy, cache):
    x, a = cache
    return summed(dy * a, x.shape), summed(dy * x, a.shape)
""",
        ((3, 4, 5), (4, 1)),
        (("summed(dy * x", "summed(dy * a"),),
    ),
}
