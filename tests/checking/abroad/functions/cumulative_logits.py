import numpy as np


def cumulative(x, w):
    c = np.cumsum(x, axis=1)
    return np.tanh(c) * w, (c, w)


def cumulative_back(dy, cache):
    c, w = cache
    t = np.tanh(c)
    dc = dy * w * (1 - t**2)
    dx = np.cumsum(dc[:, ::-1], axis=1)[:, ::-1]
    return dx, (dy * t).sum(0)


# ---- the case
TARGET = (cumulative, cumulative_back)
inputs = normal((3, 4), 4)
WRONG = [
    Wrong("np.cumsum(dc[:, ::-1], axis=1)[:, ::-1]", "np.cumsum(dc, axis=1)", "order", (r"revers|flip|order|cumsum|other way|::-1",)),
    Wrong("np.cumsum(dc[:, ::-1], axis=1)[:, ::-1]", "np.cumsum(dc[::-1], axis=1)[::-1]", "axis", (r"axis|revers|flip|order|::-1",)),
]
