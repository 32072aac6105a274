import numpy as np


def upsample(x, k):
    return x.repeat(k, axis=-2).repeat(k, axis=-1)


def upsample_t(g, k):
    *lead, H, W = g.shape
    return g.reshape(*lead, H // k, k, W // k, k).sum(axis=(-3, -1))


def decoder_block(x, skip, w):
    """x (C, H, W), skip (C, 2H, 2W), w (C,)"""
    up = upsample(x, 2)
    y = np.tanh(w[:, None, None] * up + skip)
    return y, (w, up, y)


def decoder_block_vjp(dy, cache):
    w, up, y = cache
    dpre = dy * (1 - y * y)
    dw = (dpre * up).sum(axis=(1, 2))
    dx = upsample_t(dpre * w[:, None, None], 2)
    return dx, dpre, dw


# ---- the case
TARGET = (decoder_block, decoder_block_vjp)
inputs = normal((2, 2, 2), (2, 4, 4), 2)
WRONG = [
    Wrong(".sum(axis=(-3, -1))", ".mean(axis=(-3, -1))", "sum for mean"),
    Wrong("return dx, dpre, dw", "return dx, dy, dw", "name"),
    Wrong(".sum(axis=(-3, -1))", ".sum(axis=(-4, -2))", "axis", (r"reshape|axis|order|shape",)),
]
