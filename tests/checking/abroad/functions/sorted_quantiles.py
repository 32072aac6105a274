import numpy as np


def trimmed_mean(x, k):
    """Mean without the k smallest and largest of each column."""
    order = np.argsort(x, axis=0, kind="stable")
    n = x.shape[0]
    keep = order[k:n - k]
    return np.take_along_axis(x, keep, 0).mean(0), (x.shape, keep)


def trimmed_mean_back(dy, cache):
    shape, keep = cache
    dx = np.zeros(shape)
    np.put_along_axis(dx, keep, dy / keep.shape[0], axis=0)
    return dx


# ---- the case
TARGET = (trimmed_mean, trimmed_mean_back)
def inputs(rng):
    return rng.standard_normal((7, 3)), 2
WRONG = [
    Wrong("dy / keep.shape[0]", "dy / shape[0]", "factor wrong"),
    Wrong("keep, dy / keep", "keep[::-1][:1], dy / keep", "index", (r"element|missing|rows|zero|index|::-1",)),
]
