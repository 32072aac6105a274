import numpy as np


def segment_mean(x, ids, w):
    n = 3
    total = np.zeros((n, x.shape[1]))
    np.add.at(total, ids, x)
    count = np.bincount(ids, minlength=n)
    mean = total / count[:, None]
    return mean @ w, (mean, ids, count, w)


def segment_mean_backward(dy, cache):
    mean, ids, count, w = cache
    dmean = dy @ w.T
    dw = mean.T @ dy
    dx = dmean[ids] / count[ids][:, None]
    return dx, dw


# ---- the case
TARGET = (segment_mean, segment_mean_backward)
OPTIONS = {"wrt": ("x", "w")}
def inputs(rng):
    return rng.standard_normal((6, 4)), np.array([0, 2, 1, 0, 2, 2]), rng.standard_normal((4, 2))
import numpy as np
WRONG = [
    Wrong("dx = dmean[ids] / count[ids][:, None]", "dx = dmean[ids]", "factor missing"),
    Wrong("dx = dmean[ids] / count[ids][:, None]", "dx = dmean[ids] / len(ids)", "factor wrong"),
]
