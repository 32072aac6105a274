import numpy as np

sigm = lambda a: 1 / (1 + np.exp(-a))


def cell(x, h, c, W, b):
    H = h.shape[1]
    a = np.hstack([x, h]) @ W + b
    i, f, o, g = sigm(a[:, :H]), sigm(a[:, H:2 * H]), sigm(a[:, 2 * H:3 * H]), np.tanh(a[:, 3 * H:])
    c2 = f * c + i * g
    h2 = o * np.tanh(c2)
    return (h2, c2), (x, h, c, W, i, f, o, g, c2)


def cell_back(dout, cache):
    dh2, dc2 = dout
    x, h, c, W, i, f, o, g, c2 = cache
    tc = np.tanh(c2)
    do = dh2 * tc
    dc2 = dc2 + dh2 * o * (1 - tc**2)
    di = dc2 * g
    df = dc2 * c
    dg = dc2 * i
    dc = dc2 * f
    da = np.hstack([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g**2)])
    dW = np.hstack([x, h]).T @ da
    db = da.sum(0)
    dxh = da @ W.T
    D = x.shape[1]
    return dxh[:, :D], dxh[:, D:], dc, dW, db


# ---- the case
TARGET = (cell, cell_back)
inputs = normal((3, 4), (3, 2), (3, 2), (6, 8), 8)
WRONG = [
    (Wrong("df = dc2 * c\n", "df = dc2 * c2\n", "name"), Wrong("do = dh2 * tc", "do = dh2 * c2", "name")),
    (Wrong("dc = dc2 * f\n", "dc = dc2 * i\n", "name"), Wrong("dg * (1 - g**2)", "dg * (1 - g)", "local derivative")),
    (Wrong("db = da.sum(0)", "db = da.mean(0)", "sum for mean"), Wrong("dc2 = dc2 + dh2 * o * (1 - tc**2)", "dc2 = dh2 * o * (1 - tc**2)", "carry")),
]
