import numpy as np


def dw_forward(x, k):
    """Depthwise, 'same' padding; x (C, L), k (C, 3)."""
    C, L = x.shape
    xp = np.pad(x, ((0, 0), (1, 1)))
    y = np.zeros_like(x)
    for j in range(3):
        y += k[:, j:j + 1] * xp[:, j:j + L]
    return y, (xp, k)


def dw_backward(dy, cache):
    xp, k = cache
    C, L = dy.shape
    dxp = np.zeros_like(xp)
    dk = np.zeros_like(k)
    for j in range(3):
        dxp[:, j:j + L] += k[:, j:j + 1] * dy
        dk[:, j] = (xp[:, j:j + L] * dy).sum(axis=1)
    return dxp[:, 1:-1], dk


# ---- the case
TARGET = (dw_forward, dw_backward)
inputs = normal((3, 7), (3, 3))
WRONG = [
    Wrong("dxp[:, j:j + L] += k[:, j:j + 1] * dy", "dxp[:, j:j + L] += k[:, 2 - j:3 - j] * dy", "index", (r"index|flip|order|slice|shift",)),
    Wrong("return dxp[:, 1:-1], dk", "return dxp[:, 2:], dk", "index"),
    Wrong("dk[:, j] = (xp[:, j:j + L] * dy).sum(axis=1)", "dk[:, j] = (xp[:, 1:1 + L] * dy).sum(axis=1)", "index"),
]
