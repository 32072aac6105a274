import numpy as np


def triplet_forward(anchor, positive, negative, margin=0.5):
    dp = ((anchor - positive) ** 2).sum(1)
    dn = ((anchor - negative) ** 2).sum(1)
    loss = np.maximum(dp - dn + margin, 0.0)
    return loss.mean(), (anchor, positive, negative, loss)


def triplet_backward(dout, cache):
    anchor, positive, negative, loss = cache
    active = (loss > 0).astype(float)[:, None] * dout / len(anchor)
    da = 2 * active * (negative - positive)
    dp = -2 * active * (anchor - positive)
    dn = 2 * active * (anchor - negative)
    return da, dp, dn


# ---- the case
TARGET = (triplet_forward, triplet_backward)
inputs = normal((6, 3), (6, 3), (6, 3))
WRONG = [
    Wrong("da = 2 * active * (negative - positive)", "da = 2 * active * (anchor - positive)", "term missing"),
    Wrong("(loss > 0).astype(float)[:, None] * dout / len(anchor)", "dout / len(anchor)", "mask"),
    Wrong("dn = 2 * active * (anchor - negative)", "dn = 2 * active * (negative - anchor)", "sign"),
]
