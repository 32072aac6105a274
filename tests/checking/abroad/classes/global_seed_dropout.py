import numpy as np


class InvertedDropout:
    def __init__(self, keep_prob):
        self.keep_prob = keep_prob

    def forward(self, a):
        self.d = np.random.rand(*a.shape) < self.keep_prob
        return a * self.d / self.keep_prob

    def backward(self, da):
        da = da * self.d
        da = da / self.keep_prob
        return da


# ---- the case
TARGET = InvertedDropout(0.6)
inputs = normal((6, 5))
WRONG = [
    Wrong("        da = da / self.keep_prob\n", "", "factor missing"),
    Wrong("da = da * self.d\n", "da = da * ~self.d\n", "mask"),
]
