import numpy as np


def rmsnorm(x, g, eps=1e-6):
    ms = np.mean(x**2, axis=-1, keepdims=True)
    r = 1.0 / np.sqrt(ms + eps)
    return x * r * g, (x, r, g)


def rmsnorm_bwd(dy, cache):
    x, r, g = cache
    d = x.shape[-1]
    dg = np.sum(dy * x * r, axis=tuple(range(x.ndim - 1)))
    h = dy * g
    dx = r * h - x * r**3 * np.sum(h * x, axis=-1, keepdims=True) / d
    return dx, dg


# ---- the case
TARGET = (rmsnorm, rmsnorm_bwd)
inputs = normal((2, 3, 5), 5)
WRONG = [
    Wrong("x * r**3 *", "x * r**2 *", "exponent"),
    Wrong("axis=-1, keepdims=True) / d", "axis=-1, keepdims=True)", "factor missing"),
]
