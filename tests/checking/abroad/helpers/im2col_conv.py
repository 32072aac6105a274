import numpy as np


def im2col(x, k, s):
    N, C, H, W = x.shape
    oh, ow = (H - k) // s + 1, (W - k) // s + 1
    col = np.zeros((N, C, k, k, oh, ow))
    for i in range(k):
        for j in range(k):
            col[:, :, i, j] = x[:, :, i:i + s * oh:s, j:j + s * ow:s]
    return col.transpose(0, 4, 5, 1, 2, 3).reshape(N * oh * ow, -1)


def col2im(col, shape, k, s):
    N, C, H, W = shape
    oh, ow = (H - k) // s + 1, (W - k) // s + 1
    col = col.reshape(N, oh, ow, C, k, k).transpose(0, 3, 4, 5, 1, 2)
    x = np.zeros(shape)
    for i in range(k):
        for j in range(k):
            x[:, :, i:i + s * oh:s, j:j + s * ow:s] += col[:, :, i, j]
    return x


def conv(x, w, b):
    F, C, k, _ = w.shape
    N, _, H, W = x.shape
    oh, ow = H - k + 1, W - k + 1
    col = im2col(x, k, 1)
    out = col @ w.reshape(F, -1).T + b
    return out.reshape(N, oh, ow, F).transpose(0, 3, 1, 2), (x.shape, col, w)


def conv_back(dout, cache):
    shape, col, w = cache
    F, C, k, _ = w.shape
    d = dout.transpose(0, 2, 3, 1).reshape(-1, F)
    db = d.sum(axis=0)
    dw = (col.T @ d).T.reshape(w.shape)
    dx = col2im(d @ w.reshape(F, -1), shape, k, 1)
    return dx, dw, db


# ---- the case
TARGET = (conv, conv_back)
inputs = normal((2, 2, 4, 4), (3, 2, 2, 2), 3)
WRONG = [
    Wrong("x[:, :, i:i + s * oh:s, j:j + s * ow:s] += col", "x[:, :, i:i + s * oh:s, j:j + s * ow:s] = col", "accumulate"),
    Wrong("transpose(0, 2, 3, 1).reshape(-1, F)", "transpose(0, 3, 2, 1).reshape(-1, F)", "transpose"),
    Wrong("db = d.sum(axis=0)", "db = d.sum(axis=0) / len(d)", "factor extra"),
]
