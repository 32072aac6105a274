import numpy as np


def piecewise(x, a, b):
    y = np.where(x < 0, a * x**2, np.sin(b * x))
    return y, (x, a, b)


def piecewise_grad(dy, cache):
    x, a, b = cache
    neg = x < 0
    dx = dy * np.where(neg, 2 * a * x, b * np.cos(b * x))
    da = np.sum(dy * np.where(neg, x**2, 0))
    db = np.sum(dy * np.where(neg, 0, x * np.cos(b * x)))
    return dx, da, db


# ---- the case
TARGET = (piecewise, piecewise_grad)
def inputs(rng):
    return rng.standard_normal(9), 0.7, 1.3
WRONG = [
    Wrong("np.where(neg, 2 * a * x, b * np.cos(b * x))", "np.where(neg, 2 * a * x, np.cos(b * x))", "factor missing"),
    Wrong("np.where(neg, x**2, 0)", "np.where(neg, 0, x**2)", "mask"),
]
