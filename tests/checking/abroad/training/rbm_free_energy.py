import numpy as np


def cd_step(W, b, c, v0, v1):
    """Difference of free energies of data and (fixed) model samples."""
    def free(v):
        a = v @ W + c
        return -(v @ b) - np.logaddexp(0, a).sum(1), 1 / (1 + np.exp(-a))

    f0, h0 = free(v0)
    f1, h1 = free(v1)
    loss = f0.mean() - f1.mean()
    n0, n1 = len(v0), len(v1)
    dW = -(v0.T @ h0) / n0 + (v1.T @ h1) / n1
    db = -v0.mean(0) + v1.mean(0)
    dc = -h0.mean(0) + h1.mean(0)
    return loss, (dW, db, dc)


# ---- the case
TARGET = cd_step
CALL = "step"
OPTIONS = {"wrt": ("W", "b", "c")}
def inputs(rng):
    s = rng.standard_normal
    return s((3, 4)), s(3), s(4), rng.integers(0, 2, (5, 3)).astype(float), rng.integers(0, 2, (6, 3)).astype(float)
WRONG = [
    Wrong("dc = -h0.mean(0) + h1.mean(0)", "dc = -h0.mean(0) - h1.mean(0)", "sign"),
    Wrong("(v1.T @ h1) / n1", "(v1.T @ h1) / n0", "name", (r"n1|factor|belongs|times|scale",)),
]
