import numpy as np


def fused(x, w, b):
    z = x @ w + b
    t = np.tanh(z)
    return t * z, (x, w, z, t)


def fused_grad(dy, x, w, z, t):
    dz = dy * (t + z * (1 - t * t))
    return dz @ w.T, x.T @ dz, dz.sum(axis=0)


# ---- the case
TARGET = (fused, fused_grad)
CALL = "dy, *cache"
inputs = normal((4, 3), (3, 2), 2)
WRONG = [
    Wrong("(t + z * (1 - t * t))", "(t + z * (1 - z * z))", "name"),
    Wrong("(t + z * (1 - t * t))", "(t * (1 - t * t))", "term missing"),
]
