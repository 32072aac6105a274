import numpy as np


class BN:
    def __init__(self, d):
        self.gamma = 1 + 0.1 * np.arange(d)
        self.beta = np.zeros(d)
        self.rm, self.rv = np.full(d, 0.2), np.full(d, 1.5)
        self.training = False

    def forward(self, x):
        if self.training:
            m, v = x.mean(0), x.var(0)
            self.rm += 0.1 * (m - self.rm)
            self.rv += 0.1 * (v - self.rv)
        else:
            m, v = self.rm, self.rv
        self.inv = 1 / np.sqrt(v + 1e-5)
        self.xh = (x - m) * self.inv
        return self.gamma * self.xh + self.beta

    def backward(self, g):
        self.dgamma, self.dbeta = (g * self.xh).sum(0), g.sum(0)
        d = g * self.gamma * self.inv
        if self.training:
            h = self.xh
            d = d - d.mean(0) - h * (d * h).mean(0)
        return d


# ---- the case
TARGET = BN(3)
GRADS = {"self.gamma": "self.dgamma", "self.beta": "self.dbeta"}
inputs = normal((5, 3))
WRONG = [
    Wrong("        if self.training:\n            h = self.xh", "        if True:\n            h = self.xh", "term extra", (r"extra|term|mean|belong|missing|training|condition",)),
    Wrong("d = g * self.gamma * self.inv", "d = g * self.gamma", "factor missing"),
]
