import numpy as np


class GlobalAvgPool:
    def forward(self, x):
        self.hw = x.shape[2:]
        return x.mean(axis=(2, 3))

    def backward(self, d):
        h, w = self.hw
        return np.broadcast_to(d[:, :, None, None], d.shape + self.hw) / (h * w)


class Head:
    def __init__(self, w):
        self.pool = GlobalAvgPool()
        self.w = w

    def forward(self, x):
        self.f = self.pool.forward(x)
        return self.f @ self.w

    def backward(self, d):
        self.dw = self.f.T @ d
        return self.pool.backward(d @ self.w.T)


def head(x, w):
    m = Head(w)
    return m.forward(x), m


def head_backward(d, m):
    dx = m.backward(d)
    return dx, m.dw


# ---- the case
TARGET = (head, head_backward)
inputs = normal((2, 3, 2, 4), (3, 2))
WRONG = [
    Wrong(" / (h * w)", " / h", "factor wrong"),
    Wrong("self.dw = self.f.T @ d", "self.dw = self.f.T @ d / len(d)", "factor extra"),
]
