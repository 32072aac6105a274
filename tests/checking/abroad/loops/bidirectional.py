import numpy as np


def scan(x, W, U, order):
    h = np.zeros(U.shape[0])
    hs = np.zeros((len(x), U.shape[0]))
    prevs = np.zeros_like(hs)
    for t in order:
        prevs[t] = h
        h = np.tanh(x[t] @ W + h @ U)
        hs[t] = h
    return hs, prevs


def scan_back(dhs, x, W, U, hs, prevs, order):
    dx, dW, dU = np.zeros_like(x), np.zeros_like(W), np.zeros_like(U)
    carry = np.zeros(U.shape[0])
    for t in reversed(order):
        dz = (dhs[t] + carry) * (1 - hs[t] ** 2)
        dx[t] = W @ dz
        dW += np.outer(x[t], dz)
        dU += np.outer(prevs[t], dz)
        carry = U @ dz
    return dx, dW, dU


def birnn(x, Wf, Uf, Wb, Ub):
    T = len(x)
    f = scan(x, Wf, Uf, list(range(T)))
    b = scan(x, Wb, Ub, list(range(T - 1, -1, -1)))
    return np.hstack([f[0], b[0]]), (x, Wf, Uf, Wb, Ub, f, b)


def birnn_back(dy, cache):
    x, Wf, Uf, Wb, Ub, f, b = cache
    T, H = len(x), Uf.shape[0]
    dxf, dWf, dUf = scan_back(dy[:, :H], x, Wf, Uf, *f, list(range(T)))
    dxb, dWb, dUb = scan_back(dy[:, H:], x, Wb, Ub, *b, list(range(T - 1, -1, -1)))
    return dxf + dxb, dWf, dUf, dWb, dUb


# ---- the case
TARGET = (birnn, birnn_back)
inputs = normal((4, 2), (2, 3), (3, 3), (2, 3), (3, 3))
WRONG = [
    Wrong("return dxf + dxb, dWf", "return dxf, dWf", "term missing"),
    Wrong("Wb, Ub, *b, list(range(T - 1, -1, -1)))\n    return dxf", "Wb, Ub, *b, list(range(T)))\n    return dxf", "order"),
    Wrong("dy[:, H:], x", "dy[:, :H], x", "index"),
]
