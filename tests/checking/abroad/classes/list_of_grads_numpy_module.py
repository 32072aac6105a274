import numpy as np


class Model:
    """Two matrices; gradients in a list in the order of the parameters."""

    def __init__(self):
        rs = np.random.RandomState(1)
        self.params = [rs.randn(3, 4), rs.randn(4), rs.randn(4, 2)]
        self.grads = [np.zeros_like(p) for p in self.params]

    def forward(self, x):
        W1, b1, W2 = self.params
        z = x @ W1 + b1
        h = z * (z > 0)
        self._cache = x, z, h
        return h @ W2

    def backward(self, dy):
        W1, b1, W2 = self.params
        x, z, h = self._cache
        self.grads[2][:] = h.T @ dy
        dz = (dy @ W2.T) * (z > 0)
        self.grads[1][:] = dz.sum(0)
        self.grads[0][:] = x.T @ dz
        return dz @ W1.T


# ---- the case
TARGET = Model()
GRADS = {"self.params[0]": "self.grads[0]", "self.params[1]": "self.grads[1]", "self.params[2]": "self.grads[2]"}
inputs = normal((5, 3))
WRONG = [
    Wrong("self.grads[1][:] = dz.sum(0)", "self.grads[1][:] = dz[0]", "axis", (r"sum|row|axis|first",)),
    Wrong("(dy @ W2.T) * (z > 0)", "(dy @ W2.T) * (h >= 0)", "mask"),
]
