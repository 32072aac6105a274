import numpy as np


def segment_min(x, seg, n):
    """Smallest value of each segment; seg holds ints."""
    out = np.full(n, np.inf)
    np.minimum.at(out, seg, x)
    out = np.where(np.isfinite(out), out, 0.0)
    return out, (x, seg, out)


def segment_min_grad(dy, cache):
    x, seg, out = cache
    hit = x == out[seg]
    count = np.bincount(seg, weights=hit, minlength=len(out))
    return hit * (dy / np.maximum(count, 1))[seg]


# ---- the case
TARGET = (segment_min, segment_min_grad)
OPTIONS = {"wrt": ("x",)}
def inputs(rng):
    return rng.standard_normal(7), np.array([0, 0, 1, 3, 1, 3, 3]), 4
def tied(rng):
    return np.array([1.0, 1.0, 2.0, 0.5, 2.0, 0.5, 3.0]), np.array([0, 0, 1, 3, 1, 3, 3]), 4
WRONG = [
    Wrong("hit = x == out[seg]", "hit = x != out[seg]", "mask"),
    Wrong("(dy / np.maximum(count, 1))[seg]", "dy[seg]", "duplicates", (r"tie|count|equal|kink|share|min",), "tied"),
]
