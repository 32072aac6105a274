import numpy as np


class BatchNorm1d:
    def __init__(self, dim, momentum=0.9, eps=1e-5):
        self.gamma = np.random.uniform(0.5, 1.5, dim)
        self.beta = np.zeros(dim)
        self.running_mean = np.zeros(dim)
        self.running_var = np.ones(dim)
        self.momentum, self.eps = momentum, eps
        self.grads = {}

    def forward(self, x):
        mean, var = x.mean(0), x.var(0)
        self.running_mean = self.momentum * self.running_mean + (1 - self.momentum) * mean
        self.running_var = self.momentum * self.running_var + (1 - self.momentum) * var
        self.std = np.sqrt(var + self.eps)
        self.xn = (x - mean) / self.std
        return self.gamma * self.xn + self.beta

    def backward(self, dout):
        self.grads["gamma"] = np.sum(dout * self.xn, axis=0)
        self.grads["beta"] = np.sum(dout, axis=0)
        dxn = dout * self.gamma
        return (dxn - dxn.mean(0) - self.xn * (dxn * self.xn).mean(0)) / self.std


# ---- the case
TARGET = BatchNorm1d(3)
GRADS = {"self.gamma": "self.grads['gamma']", "self.beta": "self.grads['beta']"}
inputs = normal((6, 3))
WRONG = [
    Wrong("dxn = dout * self.gamma", "dxn = dout", "factor missing"),
    Wrong("(dxn * self.xn).mean(0)) / self.std", "(dxn * self.xn).mean(0)) * self.std", "exponent", (r"power|expon|divid|multipl|factor|instead",)),
]
