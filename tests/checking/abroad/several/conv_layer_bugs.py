import numpy as np


def conv1d(x, w, b):
    n, k = len(x) - len(w) + 1, len(w)
    y = np.zeros(n)
    for i in range(n):
        y[i] = x[i:i + k] @ w + b
    a = np.tanh(y)
    return a, (x, w, a)


def conv1d_back(da, cache):
    x, w, a = cache
    k = len(w)
    dy = da * (1 - a**2)
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(len(dy)):
        dx[i:i + k] += dy[i] * w
        dw += dy[i] * x[i:i + k]
    db = dy.sum()
    return dx, dw, db


# ---- the case
TARGET = (conv1d, conv1d_back)
def inputs(rng):
    return rng.standard_normal(7), rng.standard_normal(3), 0.2
WRONG = [
    (Wrong("dx[i:i + k] += dy[i] * w", "dx[i:i + k] = dy[i] * w", "accumulate"), Wrong("db = dy.sum()", "db = dy.mean()", "sum for mean")),
    (Wrong("(1 - a**2)", "(1 - a)", "local derivative"), Wrong("dw += dy[i] * x[i:i + k]", "dw += da[i] * x[i:i + k]", "name")),
]
