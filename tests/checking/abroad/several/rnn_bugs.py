import numpy as np


def rnn(x, Wx, Wh, Wy):
    h = np.zeros((x.shape[1], Wh.shape[0]))
    hs, out = [h], []
    for xt in x:
        h = np.tanh(xt @ Wx + h @ Wh)
        hs.append(h)
        out.append(h @ Wy)
    return np.stack(out), (x, Wx, Wh, Wy, hs)


def rnn_back(dout, cache):
    x, Wx, Wh, Wy, hs = cache
    dWx, dWh, dWy = [np.zeros_like(w) for w in (Wx, Wh, Wy)]
    dx = np.zeros_like(x)
    dnext = 0
    for t in reversed(range(len(x))):
        dWy += hs[t + 1].T @ dout[t]
        dh = dout[t] @ Wy.T + dnext
        dz = dh * (1 - hs[t + 1] ** 2)
        dWx += x[t].T @ dz
        dWh += hs[t].T @ dz
        dx[t] = dz @ Wx.T
        dnext = dz @ Wh.T
    return dx, dWx, dWh, dWy


# ---- the case
TARGET = (rnn, rnn_back)
inputs = normal((3, 2, 2), (2, 3), (3, 3), (3, 2))
WRONG = [
    (Wrong("dWy += hs[t + 1].T @ dout[t]", "dWy += hs[t].T @ dout[t]", "index"), Wrong("dnext = dz @ Wh.T", "dnext = dz @ Wh", "transpose")),
    (Wrong("dWx += x[t].T @ dz", "dWx = x[t].T @ dz", "accumulate"), Wrong("dWh += hs[t].T @ dz", "dWh += hs[t + 1].T @ dz", "index")),
    (Wrong(" + dnext\n", "\n", "carry"), Wrong("dx[t] = dz @ Wx.T", "dx[t] = dh @ Wx.T", "name")),
]
