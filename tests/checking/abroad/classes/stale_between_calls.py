import numpy as np


class Scale:
    """Accumulates the gradient of s; whoever calls twice without zero_grad gets the sum."""

    def __init__(self):
        self.s = np.array([0.5, 1.5, -1.0])
        self.ds = np.zeros(3)

    def zero_grad(self):
        self.ds = np.zeros(3)

    def forward(self, x):
        self.x = x
        return x * self.s

    def backward(self, dy):
        self.ds += (dy * self.x).sum(axis=0)
        return dy * self.s


# ---- the case
TARGET = Scale()
GRADS = {"self.s": "self.ds"}
inputs = normal((4, 3))
WRONG = [
    Wrong("self.ds += (dy * self.x).sum(axis=0)", "self.ds += (dy * self.s).sum(axis=0)", "name"),
    Wrong("return dy * self.s", "return dy * self.x", "name"),
]
