import numpy as np


class InstanceNorm2d:
    def __init__(self, c):
        self.scale = np.linspace(0.5, 1.5, c)
        self.shift = np.zeros(c)

    def forward(self, x):
        mu = x.mean((2, 3), keepdims=True)
        self.rstd = 1 / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
        self.xh = (x - mu) * self.rstd
        return self.scale[:, None, None] * self.xh + self.shift[:, None, None]

    def backward(self, dy):
        ax = (2, 3)
        self.dscale = (dy * self.xh).sum((0, 2, 3))
        self.dshift = dy.sum((0, 2, 3))
        d = dy * self.scale[:, None, None]
        return self.rstd * (d - d.mean(ax, keepdims=True) - self.xh * (d * self.xh).mean(ax, keepdims=True))


# ---- the case
TARGET = InstanceNorm2d(3)
GRADS = {"self.scale": "self.dscale", "self.shift": "self.dshift"}
inputs = normal((2, 3, 2, 3))
WRONG = [
    Wrong("self.dshift = dy.sum((0, 2, 3))", "self.dshift = dy.mean((0, 2, 3))", "sum for mean"),
    Wrong("ax = (2, 3)", "ax = (0, 2, 3)", "axis"),
    Wrong("return self.rstd * (d", "return (d", "factor missing"),
]
