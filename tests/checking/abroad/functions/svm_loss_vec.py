import numpy as np


def svm_loss(scores, y):
    N = scores.shape[0]
    correct = scores[np.arange(N), y][:, np.newaxis]
    margins = np.maximum(0, scores - correct + 1.0)
    margins[np.arange(N), y] = 0
    return np.sum(margins) / N, (margins, y)


def svm_grad(dL, cache):
    margins, y = cache
    N = margins.shape[0]
    pos = np.sum(margins > 0, axis=1)
    dx = np.zeros_like(margins)
    dx[margins > 0] = 1
    dx[np.arange(N), y] -= pos
    return dL * dx / N


# ---- the case
TARGET = (svm_loss, svm_grad)
def inputs(rng):
    return 3 * rng.standard_normal((6, 4)), rng.integers(0, 4, 6)
WRONG = [
    Wrong("    dx[np.arange(N), y] -= pos\n", "", "term missing", (r"missing|target|correct|labels?|element|line",)),
    Wrong("np.sum(margins > 0, axis=1)", "np.sum(margins > 0)", "axis"),
]
