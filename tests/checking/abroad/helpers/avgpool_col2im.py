import numpy as np


def windows(h, w, k, s):
    for i in range(0, h - k + 1, s):
        for j in range(0, w - k + 1, s):
            yield i // s, j // s, slice(i, i + k), slice(j, j + k)


def avgpool(x, k, s):
    C, H, W = x.shape
    out = np.zeros((C, (H - k) // s + 1, (W - k) // s + 1))
    for i, j, a, b in windows(H, W, k, s):
        out[:, i, j] = x[:, a, b].mean(axis=(1, 2))
    return out, (x.shape, k, s)


def avgpool_grad(dout, cache):
    shape, k, s = cache
    dx = np.zeros(shape)
    for i, j, a, b in windows(*shape[1:], k, s):
        dx[:, a, b] += dout[:, i, j][:, None, None] / k**2
    return dx


# ---- the case
TARGET = (avgpool, avgpool_grad)
def inputs(rng):
    return rng.standard_normal((2, 5, 5)), 3, 1
WRONG = [
    Wrong("dx[:, a, b] += dout", "dx[:, a, b] = dout", "accumulate"),
    Wrong("[:, None, None] / k**2", "[:, None, None] / k", "exponent", (r"factor|power|expon|squar|times|scale",)),
    Wrong("dout[:, i, j][:, None", "dout[:, j, i][:, None", "swapped", (r"swap|transpos|order|index",)),
]
