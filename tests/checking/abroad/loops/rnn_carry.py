import numpy as np


def rnn_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    h = np.zeros((N, T, H))
    prev = h0
    for t in range(T):
        prev = np.tanh(x[:, t] @ Wx + prev @ Wh + b)
        h[:, t] = prev
    return h, (x, h0, Wx, Wh, b, h)


def rnn_backward(dh, cache):
    x, h0, Wx, Wh, b, h = cache
    N, T, H = dh.shape
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(b)
    dprev = np.zeros_like(h0)
    for t in range(T - 1, -1, -1):
        dht = dh[:, t] + dprev
        da = dht * (1 - h[:, t] ** 2)
        hp = h[:, t - 1] if t > 0 else h0
        dx[:, t] = da @ Wx.T
        dprev = da @ Wh.T
        dWx += x[:, t].T @ da
        dWh += hp.T @ da
        db += da.sum(axis=0)
    return dx, dprev, dWx, dWh, db


# ---- the case
TARGET = (rnn_forward, rnn_backward)
inputs = normal((2, 4, 3), (2, 5), (3, 5), (5, 5), 5)
WRONG = [
    Wrong("dht = dh[:, t] + dprev", "dht = dh[:, t]", "carry"),
    Wrong("dWh += hp.T @ da", "dWh += h[:, t].T @ da", "name", (r"hp|step|previous|instead|should be",)),
    Wrong("dWx += x[:, t].T @ da", "dWx = x[:, t].T @ da", "accumulate"),
    Wrong("dprev = da @ Wh.T", "dprev = da @ Wh", "transpose"),
]
