import numpy as np


def median_rows(x):
    n = x.shape[1]
    i = np.argsort(x, axis=1)[:, n // 2]
    r = np.arange(len(x))
    return x[r, i], (x.shape, r, i)


def median_rows_vjp(g, cache):
    shape, r, i = cache
    out = np.zeros(shape)
    out[r, i] = g
    return out


# ---- the case
TARGET = (median_rows, median_rows_vjp)
inputs = normal((4, 5))
WRONG = [
    Wrong("out[r, i] = g", "out[r, i] = g / shape[1]", "factor extra"),
    Wrong("out[r, i] = g", "out[r, i - 1] = g", "index"),
]
