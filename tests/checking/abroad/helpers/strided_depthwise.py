import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def depthwise(x, k):
    """x (C, H, W), k (C, 3, 3), zero padding of one."""
    xp = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    win = sliding_window_view(xp, (3, 3), axis=(1, 2))
    return np.einsum("chwij,cij->chw", win, k), (xp.shape, win, k)


def depthwise_grad(dy, cache):
    shape, win, k = cache
    dk = np.einsum("chw,chwij->cij", dy, win)
    dxp = np.zeros(shape)
    H, W = dy.shape[1:]
    for i in range(3):
        for j in range(3):
            dxp[:, i:i + H, j:j + W] += dy * k[:, i, j][:, None, None]
    return dxp[:, 1:-1, 1:-1], dk


# ---- the case
TARGET = (depthwise, depthwise_grad)
inputs = normal((2, 4, 4), (2, 3, 3))
WRONG = [
    Wrong("k[:, i, j][:, None, None]", "k[:, j, i][:, None, None]", "swapped", (r"swap|transpos|order|index|belongs",)),
    Wrong("return dxp[:, 1:-1, 1:-1], dk", "return dxp[:, :-2, :-2], dk", "index"),
    Wrong('"chw,chwij->cij"', '"chw,chwij->cji"', "einsum"),
]
