import numpy as np


def unbroadcast(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for i, n in enumerate(shape):
        if n == 1:
            g = g.sum(axis=i, keepdims=True)
    return g


def scale_shift(x, a, b):
    return a * x + b, (x, a, b)


def scale_shift_grad(dy, cache):
    x, a, b = cache
    return (unbroadcast(dy * a, x.shape), unbroadcast(dy * x, a.shape), unbroadcast(dy, b.shape))


# ---- the case
TARGET = (scale_shift, scale_shift_grad)
inputs = normal((3, 4, 5), (4, 1), (1, 5))
WRONG = [
    Wrong("unbroadcast(dy * x, a.shape)", "unbroadcast(dy * a, a.shape)", "name"),
    Wrong("g = g.sum(axis=0)\n", "g = g.mean(axis=0)\n", "sum for mean"),
]
