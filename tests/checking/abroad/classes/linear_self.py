import numpy as np


class Linear:
    def __init__(self, n_in, n_out):
        self.W = np.random.randn(n_in, n_out) * 0.3
        self.b = np.zeros(n_out)
        self.dW = np.zeros_like(self.W)
        self.db = np.zeros_like(self.b)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        self.dW = self.x.T @ dout
        self.db = dout.sum(axis=0)
        return dout @ self.W.T


# ---- the case
TARGET = Linear(4, 3)
GRADS = {"self.W": "self.dW", "self.b": "self.db"}
inputs = normal((5, 4))
WRONG = [
    Wrong("self.db = dout.sum(axis=0)", "self.db = dout.mean(axis=0)", "sum for mean"),
    Wrong("self.dW = self.x.T @ dout", "self.dW = -self.x.T @ dout", "sign"),
]
