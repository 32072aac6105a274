import numpy as np


class Square:
    """Frees what it kept as soon as backward has used it."""

    def forward(self, x, w):
        self.saved = (x, w)
        return (x @ w) ** 2

    def backward(self, dy):
        x, w = self.saved
        del self.saved
        dz = 2 * (x @ w) * dy
        return dz @ w.T, x.T @ dz


# ---- the case
TARGET = Square()
inputs = normal((4, 3), (3, 2))
WRONG = [
    Wrong("dz = 2 * (x @ w) * dy", "dz = (x @ w) * dy", "factor missing"),
    Wrong("return dz @ w.T, x.T @ dz", "return dz @ w.T, x.T @ dy", "name"),
]
