import numpy as np


def glu_fwd(x, V, W, b):
    a = x @ V
    g = 1.0 / (1.0 + np.exp(-(x @ W + b)))
    return a * g, {"x": x, "V": V, "W": W, "a": a, "g": g}


def glu_bwd(dout, cache):
    x, V, W, a, g = (cache[k] for k in ("x", "V", "W", "a", "g"))
    da = dout * g
    dz = dout * a * g * (1.0 - g)
    dV = x.T @ da
    dW = x.T @ dz
    db = dz.sum(axis=0)
    dx = da @ V.T + dz @ W.T
    return dx, dV, dW, db


# ---- the case
TARGET = (glu_fwd, glu_bwd)
inputs = normal((5, 3), (3, 4), (3, 4), 4)
WRONG = [
    Wrong("dz = dout * a * g * (1.0 - g)", "dz = da * g * (1.0 - g)", "name"),
    Wrong("dx = da @ V.T + dz @ W.T", "dx = da @ V.T", "term missing"),
    (Wrong("dz = dout * a * g * (1.0 - g)", "dz = dout * a * (1.0 - g)", "factor missing"), Wrong("dV = x.T @ da", "dV = x.T @ dout", "name")),
    (Wrong("dV = x.T @ da", "dV = x.T @ dz", "name"), Wrong("db = dz.sum(axis=0)", "db = da.sum(axis=0)", "name")),
]
