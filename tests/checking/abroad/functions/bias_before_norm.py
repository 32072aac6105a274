import numpy as np


def linear_bn(x, W, b, g):
    z = x @ W + b
    zc = z - z.mean(0)
    s = 1 / np.sqrt((zc**2).mean(0) + 1e-5)
    zn = zc * s
    return g * zn, (x, W, s, zn, g)


def linear_bn_bwd(dout, cache):
    x, W, s, zn, g = cache
    dg = (dout * zn).sum(0)
    t = dout * g
    dz = s * (t - t.mean(0) - zn * (t * zn).mean(0))
    return dz @ W.T, x.T @ dz, dz.sum(0), dg


# ---- the case
TARGET = (linear_bn, linear_bn_bwd)
inputs = normal((6, 3), (3, 4), 4, 4)
WRONG = [
    Wrong("(t - t.mean(0) - zn", "(t - zn", "term missing"),
    Wrong("dg = (dout * zn).sum(0)", "dg = (dout * zn**2).sum(0)", "exponent"),
]
