import numpy as np


def pinball(pred, y, q):
    e = y - pred
    return np.maximum(q * e, (q - 1) * e).mean(), (e, q)


def pinball_grad(g, cache):
    e, q = cache
    return g * np.where(e >= 0, -q, 1 - q) / e.size


# ---- the case
TARGET = (pinball, pinball_grad)
OPTIONS = {"wrt": ("pred",)}
def inputs(rng):
    pred = rng.standard_normal(7)
    y = rng.standard_normal(7)
    y[3] = pred[3]
    return pred, y, 0.9
KINK = True
WRONG = [
    Wrong("np.where(e >= 0, -q, 1 - q)", "np.where(e >= 0, q, q - 1)", "sign"),
    Wrong("np.where(e >= 0, -q, 1 - q)", "np.where(e >= 0, q - 1, q)", "sign", (r"sign|branch|where|swap|exchang",)),
]
