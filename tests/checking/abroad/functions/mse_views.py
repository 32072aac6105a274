import numpy as np


def mse_on_center(pred, target):
    """Only the middle (a view) counts."""
    c = pred[1:-1, 1:-1]
    t = target[1:-1, 1:-1]
    diff = c - t
    return np.mean(diff**2), (diff, pred.shape)


def mse_on_center_grad(g, cache):
    diff, shape = cache
    dpred = np.zeros(shape)
    view = dpred[1:-1, 1:-1]
    view += 2 * g * diff / diff.size
    return dpred, -dpred


# ---- the case
TARGET = (mse_on_center, mse_on_center_grad)
inputs = normal((5, 4), (5, 4))
WRONG = [
    Wrong("/ diff.size", "/ dpred.size", "factor wrong"),
    Wrong("view = dpred[1:-1, 1:-1]", "view = dpred[:-2, :-2]", "index"),
]
