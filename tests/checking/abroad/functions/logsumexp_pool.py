import numpy as np


def lse(x, t):
    """Smooth maximum over the last axis with temperature t (a float)."""
    z = x / t
    m = z.max(-1, keepdims=True)
    s = np.exp(z - m)
    y = t * (np.log(s.sum(-1)) + m[..., 0])
    return y, (x, s, y, t)


def lse_back(dy, cache):
    x, s, y, t = cache
    p = s / s.sum(-1, keepdims=True)
    dx = dy[..., None] * p
    dt = np.sum(dy * (y - (p * x).sum(-1)) / t)
    return dx, dt


# ---- the case
TARGET = (lse, lse_back)
def inputs(rng):
    return rng.standard_normal((4, 6)), 0.7
WRONG = [
    Wrong("(y - (p * x).sum(-1)) / t", "(y - (p * x).sum(-1))", "factor missing"),
    Wrong("(y - (p * x).sum(-1)) / t", "y / t", "term missing"),
]
