import numpy as np


def softmax(x):
    x = x - np.max(x, axis=-1, keepdims=True)
    return np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True)


class SoftmaxWithLoss:
    def __init__(self):
        self.y = None
        self.t = None

    def forward(self, x, t):
        self.t = t
        self.y = softmax(x)
        batch_size = x.shape[0]
        return -np.sum(np.log(self.y[np.arange(batch_size), t])) / batch_size

    def backward(self, dout=1):
        batch_size = self.t.shape[0]
        dx = self.y.copy()
        dx[np.arange(batch_size), self.t] -= 1
        dx = dx * dout
        dx = dx / batch_size
        return dx


# ---- the case
TARGET = SoftmaxWithLoss()
OPTIONS = {"wrt": ("x",)}
def inputs(rng):
    return rng.standard_normal((5, 4)), np.array([0, 3, 1, 1, 2])
WRONG = [
    Wrong("        dx = dx / batch_size\n", "", "factor missing"),
    Wrong("dx = self.y.copy()", "dx = np.log(self.y)", "local derivative", (r"log|should be|belongs|instead",)),
]
