import numpy as np


def rowscale(x, s):
    return x * s[:, None], (x, s)


def rowscale_bwd(dy, cache):
    x, s = cache
    n, d = dy.shape
    flat = dy.ravel()
    dx = (flat.reshape(n, d) * s[:, None])
    ds = (flat * x.ravel()).reshape(n, d).sum(axis=1)
    return dx, ds


# ---- the case
TARGET = (rowscale, rowscale_bwd)
inputs = normal((4, 3), 4)
WRONG = [
    Wrong("flat = dy.ravel()", 'flat = dy.ravel(order="K")', "layout", (), "layout"),
    Wrong("ds = (flat * x.ravel())", "ds = (flat * dx.ravel())", "name"),
]
