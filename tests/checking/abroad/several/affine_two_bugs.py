import numpy as np


def fwd(x, w, b):
    z = x @ w + b
    y = np.tanh(z)
    return y, (x, w, y)


def bwd(dy, cache):
    x, w, y = cache
    dz = dy * (1 - y**2)
    dw = x.T @ dz
    db = dz.sum(axis=0)
    dx = dz @ w.T
    return dx, dw, db


# ---- the case
TARGET = (fwd, bwd)
inputs = normal((4, 4), (4, 4), 4)
WRONG = [
    (Wrong("(1 - y**2)", "(1 - y)", "local derivative"), Wrong("dx = dz @ w.T", "dx = dz @ w", "transpose")),
    (Wrong("dw = x.T @ dz", "dw = x @ dz", "transpose"), Wrong("db = dz.sum(axis=0)", "db = -dz.sum(axis=0)", "sign")),
    (Wrong("db = dz.sum(axis=0)", "db = dz.mean(axis=0)", "sum for mean"), Wrong("dx = dz @ w.T", "dx = dy @ w.T", "name"), Wrong("dw = x.T @ dz", "dw = 2 * x.T @ dz", "factor extra")),
]
