import numpy as np


class TiedAutoencoder:
    def __init__(self, n, k):
        self.W = np.random.randn(n, k) * 0.5
        self.b = np.random.randn(k) * 0.1
        self.c = np.random.randn(n) * 0.1

    def forward(self, x):
        self.x = x
        self.h = np.tanh(x @ self.W + self.b)
        return self.h @ self.W.T + self.c

    def backward(self, dr):
        self.gc = dr.sum(0)
        dh = dr @ self.W
        dz = dh * (1 - self.h**2)
        self.gb = dz.sum(0)
        self.gW = dr.T @ self.h + self.x.T @ dz
        return dz @ self.W.T


# ---- the case
TARGET = TiedAutoencoder(4, 3)
GRADS = {"self.W": "self.gW", "self.b": "self.gb", "self.c": "self.gc"}
inputs = normal((5, 4))
WRONG = [
    Wrong("self.gW = dr.T @ self.h + self.x.T @ dz", "self.gW = self.x.T @ dz", "term missing"),
    Wrong("self.gb = dz.sum(0)", "self.gb = dh.sum(0)", "name"),
]
