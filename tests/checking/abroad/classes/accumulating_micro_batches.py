import numpy as np


class Regressor:
    def __init__(self, w):
        self.w = w
        self.w_grad = np.zeros_like(w)
        self.stack = []

    def zero_grad(self):
        self.w_grad[:] = 0

    def forward(self, x):
        self.stack.append(x)
        return x @ self.w

    def backward(self, d):
        x = self.stack.pop()
        self.w_grad += x.T @ d
        return d @ self.w.T


def two_micro_batches(xa, xb, w):
    m = Regressor(w)
    ya = m.forward(xa)
    yb = m.forward(xb)
    return np.concatenate([ya, yb]) ** 2, (m, ya, yb)


def two_micro_batches_grad(d, cache):
    m, ya, yb = cache
    m.zero_grad()
    n = len(ya)
    # last in, first out
    dxb = m.backward(d[n:] * 2 * yb)
    dxa = m.backward(d[:n] * 2 * ya)
    return dxa, dxb, m.w_grad


# ---- the case
TARGET = (two_micro_batches, two_micro_batches_grad)
inputs = normal((3, 2), (3, 2), (2, 2))
WRONG = [
    Wrong("self.w_grad += x.T @ d", "self.w_grad = x.T @ d", "accumulate"),
    Wrong("self.stack.pop()", "self.stack.pop(0)", "order", (r"pop|order|first|last|swap|index|belongs",)),
]
