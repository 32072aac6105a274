import numpy as np


class Sigmoid:
    def __init__(self):
        self.out = None

    def forward(self, x):
        self.out = 1 / (1 + np.exp(-x))
        return self.out

    def backward(self, dout):
        dx = dout * (1.0 - self.out) * self.out
        return dx


# ---- the case
TARGET = Sigmoid()
inputs = normal((3, 4))
WRONG = [
    Wrong("dout * (1.0 - self.out) * self.out", "dout * (1.0 - self.out**2)", "local derivative"),
    Wrong("dout * (1.0 - self.out) * self.out", "dout * (1.0 - self.out)", "local derivative"),
]
