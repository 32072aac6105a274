import numpy as np


def fake_quant(x, w, scale):
    """Weights rounded to a grid in forward; the gradient passes straight through."""
    q = np.round(w / scale) * scale
    return x @ q, (x, q)


def fake_quant_bwd(dy, cache):
    x, q = cache
    return dy @ q.T, x.T @ dy


# ---- the case
TARGET = (fake_quant, fake_quant_bwd)
OPTIONS = {"wrt": ("x", "w"), "expect": "straight-through"}
W0 = np.round(np.random.default_rng(1).standard_normal((3, 2)) / 0.25) * 0.25
def meant(x, w, scale):
    return x @ w
def inputs(rng):
    return rng.standard_normal((4, 3)), W0.copy(), 0.25
WRONG = []
