import numpy as np


class Dense:
    def __init__(self, w):
        self.w = w
        self.gw = 0.0

    def forward(self, x):
        self.x = x
        return x @ self.w

    def backward(self, g):
        self.gw = self.gw + self.x.T @ g
        return g @ self.w.T


class Residual:
    def __init__(self, *inner):
        self.inner = inner

    def forward(self, x):
        y = x
        for m in self.inner:
            y = m.forward(y)
        return x + y

    def backward(self, g):
        gy = g
        for m in self.inner[::-1]:
            gy = m.backward(gy)
        return g + gy


class Sin:
    def forward(self, x):
        self.x = x
        return np.sin(x)

    def backward(self, g):
        return g * np.cos(self.x)


def block(x, w1, w2):
    a, b = Dense(w1), Dense(w2)
    net = Residual(a, Sin(), b)
    return net.forward(x), (net, a, b)


def block_bwd(g, cache):
    net, a, b = cache
    a.gw = b.gw = 0.0
    gx = net.backward(g)
    return gx, a.gw, b.gw


# ---- the case
TARGET = (block, block_bwd)
inputs = normal((4, 3), (3, 3), (3, 3))
WRONG = [
    Wrong("return g + gy", "return gy", "term missing"),
    Wrong("for m in self.inner[::-1]:", "for m in self.inner:", "order"),
    Wrong("    a.gw = b.gw = 0.0\n", "", "state", (), "twice"),
    Wrong("g * np.cos(self.x)", "g * np.cos(g)", "name"),
]
