import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, Wx, Wh, b):
    """x (T, N, D); zero initial state; gates in the order i, f, g, o."""
    T, N, _ = x.shape
    H = Wh.shape[0]
    h, c = np.zeros((T + 1, N, H)), np.zeros((T + 1, N, H))
    gates = np.zeros((T, N, 4 * H))
    for t in range(T):
        a = x[t] @ Wx + h[t] @ Wh + b
        a[:, :2 * H] = sigmoid(a[:, :2 * H])
        a[:, 2 * H:3 * H] = np.tanh(a[:, 2 * H:3 * H])
        a[:, 3 * H:] = sigmoid(a[:, 3 * H:])
        i, f, g, o = np.split(a, 4, axis=1)
        c[t + 1] = f * c[t] + i * g
        h[t + 1] = o * np.tanh(c[t + 1])
        gates[t] = a
    return h[1:].copy(), (x, Wx, Wh, h, c, gates)


def lstm_bwd(dout, cache):
    x, Wx, Wh, h, c, gates = cache
    T, N, H = dout.shape
    dx, dWx, dWh, db = np.zeros_like(x), np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(4 * H)
    dh, dc = np.zeros((N, H)), np.zeros((N, H))
    for t in range(T)[::-1]:
        i, f, g, o = np.split(gates[t], 4, axis=1)
        dh += dout[t]
        tc = np.tanh(c[t + 1])
        dc += dh * o * (1 - tc * tc)
        da = np.empty((N, 4 * H))
        da[:, :H] = dc * g * i * (1 - i)
        da[:, H:2 * H] = dc * c[t] * f * (1 - f)
        da[:, 2 * H:3 * H] = dc * i * (1 - g * g)
        da[:, 3 * H:] = dh * tc * o * (1 - o)
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        dWh += h[t].T @ da
        db += da.sum(0)
        dh = da @ Wh.T
        dc = dc * f
    return dx, dWx, dWh, db


# ---- the case
TARGET = (lstm, lstm_bwd)
inputs = normal((3, 2, 2), (2, 12), (3, 12), 12)
WRONG = [
    Wrong("dc += dh * o * (1 - tc * tc)", "dc = dh * o * (1 - tc * tc)", "carry"),
    Wrong("dc * c[t] * f * (1 - f)", "dc * c[t + 1] * f * (1 - f)", "index"),
    Wrong("        dc = dc * f\n", "", "carry", (r"factor|missing|f\b|forget|carr",)),
    Wrong("dWh += h[t].T @ da", "dWh += h[t + 1].T @ da", "index"),
    Wrong("dh * tc * o * (1 - o)", "dh * c[t + 1] * o * (1 - o)", "name"),
]
