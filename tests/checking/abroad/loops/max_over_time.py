import numpy as np


def max_over_time(x, W):
    """Affine per step, the largest value over time kept with where it was."""
    best = np.full(W.shape[1], -np.inf)
    when = np.zeros(W.shape[1], int)
    for t in range(len(x)):
        z = x[t] @ W
        better = z > best
        best = np.where(better, z, best)
        when[better] = t
    return best, (x, W, when)


def max_over_time_bwd(dy, cache):
    x, W, when = cache
    dx, dW = np.zeros_like(x), np.zeros_like(W)
    for j, t in enumerate(when):
        dx[t] += dy[j] * W[:, j]
        dW[:, j] += dy[j] * x[t]
    return dx, dW


# ---- the case
TARGET = (max_over_time, max_over_time_bwd)
inputs = normal((4, 3), (3, 5))
WRONG = [
    Wrong("dx[t] += dy[j] * W[:, j]", "dx[t] = dy[j] * W[:, j]", "accumulate"),
    Wrong("dW[:, j] += dy[j] * x[t]", "dW[:, j] += dy[j] * x[-1]", "index"),
]
