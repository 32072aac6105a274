import numpy as np


class Standardize:
    """Own buffer is reused between calls; the input is left as it is."""

    def __init__(self):
        self._buf = None

    def forward(self, x):
        if self._buf is None or self._buf.shape != x.shape:
            self._buf = np.empty_like(x)
        np.subtract(x, x.mean(1, keepdims=True), out=self._buf)
        self.sd = np.sqrt((self._buf**2).mean(1, keepdims=True) + 1e-6)
        self._buf /= self.sd
        return self._buf.copy()

    def backward(self, g):
        h = self._buf
        out = g - g.mean(1, keepdims=True)
        out -= h * (g * h).mean(1, keepdims=True)
        out /= self.sd
        return out


# ---- the case
TARGET = Standardize()
inputs = normal((3, 5))
WRONG = [
    Wrong("out = g - g.mean(1, keepdims=True)", "out = g", "term missing", (r"missing|mean|term|written|copy|in place",)),
    Wrong("        out /= self.sd\n", "", "factor missing"),
]
