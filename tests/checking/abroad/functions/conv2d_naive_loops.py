import numpy as np


def conv_forward_naive(x, w, b, stride, pad):
    N, C, H, W = x.shape
    F, _, HH, WW = w.shape
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    Ho = 1 + (H + 2 * pad - HH) // stride
    Wo = 1 + (W + 2 * pad - WW) // stride
    out = np.zeros((N, F, Ho, Wo))
    for n in range(N):
        for f in range(F):
            for i in range(Ho):
                for j in range(Wo):
                    r, c = i * stride, j * stride
                    out[n, f, i, j] = np.sum(xp[n, :, r:r + HH, c:c + WW] * w[f]) + b[f]
    return out, (xp, w, stride, pad)


def conv_backward_naive(dout, cache):
    xp, w, stride, pad = cache
    N, F, Ho, Wo = dout.shape
    HH, WW = w.shape[2:]
    dxp, dw = np.zeros_like(xp), np.zeros_like(w)
    db = dout.sum(axis=(0, 2, 3))
    for n in range(N):
        for f in range(F):
            for i in range(Ho):
                for j in range(Wo):
                    r, c = i * stride, j * stride
                    dw[f] += xp[n, :, r:r + HH, c:c + WW] * dout[n, f, i, j]
                    dxp[n, :, r:r + HH, c:c + WW] += w[f] * dout[n, f, i, j]
    dx = dxp[:, :, pad:-pad, pad:-pad]
    return dx, dw, db


# ---- the case
TARGET = (conv_forward_naive, conv_backward_naive)
OPTIONS = {"wrt": ("x", "w", "b")}
def inputs(rng):
    return rng.standard_normal((2, 2, 5, 5)), rng.standard_normal((2, 2, 3, 3)), rng.standard_normal(2), 2, 1
WRONG = [
    Wrong("dx = dxp[:, :, pad:-pad, pad:-pad]", "dx = dxp[:, :, :-2 * pad, :-2 * pad]", "index", (r"slice|pad|shift|index|offset|roll",)),
    Wrong("                    dw[f] += xp[n", "                    dw[f] = xp[n", "accumulate"),
    Wrong("db = dout.sum(axis=(0, 2, 3))", "db = dout.sum(axis=(2, 3)).mean(axis=0)", "sum for mean"),
    Wrong("+= w[f] * dout[n, f, i, j]", "+= w[f, :, ::-1, ::-1] * dout[n, f, i, j]", "order", (r"flip|revers|other way|\[::-1|::-1",)),
]
