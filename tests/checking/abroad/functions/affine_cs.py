import numpy as np


def affine_forward(x, w, b):
    """x: (N, d1, ..., dk), flattened to (N, D); w: (D, M)."""
    N = x.shape[0]
    out = x.reshape(N, -1).dot(w) + b
    cache = (x, w, b)
    return out, cache


def affine_backward(dout, cache):
    x, w, b = cache
    N = x.shape[0]
    dx = dout.dot(w.T).reshape(x.shape)
    dw = x.reshape(N, -1).T.dot(dout)
    db = np.sum(dout, axis=0)
    return dx, dw, db


# ---- the case
TARGET = (affine_forward, affine_backward)
inputs = normal((4, 2, 3), (6, 5), 5)
WRONG = [
    Wrong("db = np.sum(dout, axis=0)", "db = np.mean(dout, axis=0)", "sum for mean"),
    Wrong("dw = x.reshape(N, -1).T.dot(dout)", "dw = x.reshape(N, -1).T.dot(dout) / N", "factor extra"),
]
