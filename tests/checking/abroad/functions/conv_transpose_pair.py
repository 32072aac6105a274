import numpy as np


def conv_transpose_forward(x, w, b, conv_param):
    """x: (N, C, H, W), w: (C, F, HH, WW), b: (F,)"""
    stride, pad = conv_param["stride"], conv_param["pad"]
    N, C, H, W = x.shape
    _, F, HH, WW = w.shape
    Ho = (H - 1) * stride + HH - 2 * pad
    Wo = (W - 1) * stride + WW - 2 * pad
    full = np.zeros((N, F, Ho + 2 * pad, Wo + 2 * pad))
    for i in range(H):
        for j in range(W):
            hs, ws = i * stride, j * stride
            full[:, :, hs:hs + HH, ws:ws + WW] += np.tensordot(x[:, :, i, j], w, axes=(1, 0))
    out = full[:, :, pad:pad + Ho, pad:pad + Wo] + b[None, :, None, None]
    cache = (x, w, b, conv_param)
    return out, cache


def conv_transpose_backward(dout, cache):
    x, w, b, conv_param = cache
    stride, pad = conv_param["stride"], conv_param["pad"]
    N, C, H, W = x.shape
    _, F, HH, WW = w.shape
    dfull = np.pad(dout, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    dx = np.zeros_like(x)
    dw = np.zeros_like(w)
    db = dout.sum(axis=(0, 2, 3))
    for i in range(H):
        for j in range(W):
            hs, ws = i * stride, j * stride
            window = dfull[:, :, hs:hs + HH, ws:ws + WW]
            dx[:, :, i, j] = np.tensordot(window, w, axes=([1, 2, 3], [1, 2, 3]))
            dw += np.tensordot(x[:, :, i, j], window, axes=(0, 0))
    return dx, dw, db


# ---- the case
TARGET = (conv_transpose_forward, conv_transpose_backward)
def inputs(rng):
    s = rng.standard_normal
    return s((2, 3, 3, 4)), s((3, 2, 3, 3)), s(2), {"stride": 2, "pad": 1}
WRONG = [
    Wrong("hs, ws = i * stride, j * stride\n            window", "hs, ws = i, j\n            window", "index", (r"stride|index|factor|times",)),
    Wrong("dw += np.tensordot(x", "dw = np.tensordot(x", "accumulate"),
    Wrong("db = dout.sum(axis=(0, 2, 3))", "db = dout.sum(axis=(2, 3)).mean(axis=0)", "sum for mean"),
]
