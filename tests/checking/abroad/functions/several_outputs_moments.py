import numpy as np


def moments(x):
    m = x.mean(0)
    c = x - m
    v = (c * c).mean(0)
    n = len(x)
    return (m, v), (c, n)


def moments_grad(dout, cache):
    dm, dv = dout
    c, n = cache
    return np.ones_like(c) * dm / n + 2 * c * dv / n


# ---- the case
TARGET = (moments, moments_grad)
inputs = normal((5, 3))
WRONG = [
    Wrong("2 * c * dv / n", "2 * c * dv / (n - 1)", "factor wrong"),
    Wrong("np.ones_like(c) * dm / n + ", "", "term missing"),
]
