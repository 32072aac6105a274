import numpy as np


def gated(x, g):
    s = 1 / (1 + np.exp(-g))
    return x * s, (x, s)


def gated_bwd(dy, cache):
    x, s = cache
    dx = dy * s
    dg = dy * x * s * (1 - s)
    return dx, dg


# ---- the case
TARGET = (gated, gated_bwd)
inputs = normal((3, 4), (3, 4))
WRONG = [
    Wrong("    dx = dy * s\n", "    dy *= s\n    dx = dy\n", "writes", (r"writ|in place|overwrit|changed|dy|factor|stale",)),
    Wrong("dg = dy * x * s * (1 - s)", "dg = dx * x * s * (1 - s)", "name"),
]
