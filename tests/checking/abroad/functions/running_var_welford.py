import numpy as np

STATE = {"mean": 0.0, "n": 0}


def center_running(x, w):
    """Keeps a running mean outside; the output uses only the batch."""
    m = x.mean()
    STATE["n"] += 1
    STATE["mean"] += (m - STATE["mean"]) / STATE["n"]
    return w * (x - m), (x - m, w)


def center_running_grad(dy, cache):
    c, w = cache
    g = dy * w
    return g - g.mean(), (dy * c).sum(axis=0)


# ---- the case
TARGET = (center_running, center_running_grad)
inputs = normal((4, 3), 3)
WRONG = [
    Wrong("return g - g.mean(),", "return g,", "term missing"),
    Wrong("return g - g.mean(),", "return g - dy.mean(),", "name"),
]
