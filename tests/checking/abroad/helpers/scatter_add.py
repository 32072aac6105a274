import numpy as np


def gather_mean(x, idx, seg, n):
    """Mean of rows x[idx] within the segments seg (graph neighbours)."""
    counts = np.bincount(seg, minlength=n)
    out = np.zeros((n, x.shape[1]))
    np.add.at(out, seg, x[idx])
    out /= np.maximum(counts, 1)[:, None]
    return out, (x.shape, idx, seg, counts)


def gather_mean_vjp(g, cache):
    shape, idx, seg, counts = cache
    g = g / np.maximum(counts, 1)[:, None]
    dx = np.zeros(shape)
    np.add.at(dx, idx, g[seg])
    return dx


# ---- the case
TARGET = (gather_mean, gather_mean_vjp)
OPTIONS = {"wrt": ("x",)}
def inputs(rng):
    return rng.standard_normal((5, 3)), np.array([0, 1, 1, 4, 2, 0]), np.array([0, 0, 1, 1, 1, 3]), 4
WRONG = [
    Wrong("np.add.at(dx, idx, g[seg])", "dx[idx] += g[seg]", "duplicates"),
    Wrong("    g = g / np.maximum(counts, 1)[:, None]\n", "", "factor missing"),
]
