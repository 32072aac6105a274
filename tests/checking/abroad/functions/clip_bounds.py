import numpy as np


def hard_tanh(x, lo=-1.0, hi=1.0):
    return np.clip(x, lo, hi), (x, lo, hi)


def hard_tanh_grad(dy, cache):
    x, lo, hi = cache
    inside = (x > lo) & (x < hi)
    return np.where(inside, dy, 0.0)


# ---- the case
TARGET = (hard_tanh, hard_tanh_grad)
KINK = True
def inputs(rng):
    x = 1.5 * rng.standard_normal((4, 5))
    x[0, 0], x[1, 1], x[2, 2] = 1.0, -1.0, 1.0
    return (x,)
def far(rng):
    return (3 * rng.standard_normal((4, 5)),)
WRONG = [
    Wrong("(x > lo) & (x < hi)", "(x > lo) | (x < hi)", "mask", (), "far"),
    Wrong("(x > lo) & (x < hi)", "x < hi", "mask", (), "far"),
]
