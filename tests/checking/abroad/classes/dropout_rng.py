import numpy as np


class Dropout:
    def __init__(self, p, seed):
        self.p = p
        self.rng = np.random.default_rng(seed)

    def forward(self, x):
        self.mask = (self.rng.random(x.shape) >= self.p) / (1 - self.p)
        return x * self.mask

    def backward(self, grad):
        return grad * self.mask


# ---- the case
TARGET = Dropout(0.3, 42)
inputs = normal((5, 6))
WRONG = [
    Wrong("return grad * self.mask", "return grad * (self.mask > 0)", "factor missing"),
    Wrong("return grad * self.mask", "return grad", "mask"),
]
