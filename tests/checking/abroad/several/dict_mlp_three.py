import numpy as np


class MLP:
    def __init__(self, params):
        self.p = params

    def forward(self, x):
        self.x = x
        self.z1 = x @ self.p["W1"] + self.p["b1"]
        self.a1 = np.tanh(self.z1)
        self.z2 = self.a1 @ self.p["W2"] + self.p["b2"]
        return self.z2

    def backward(self, d):
        g = {}
        g["b2"] = d.sum(0)
        g["W2"] = self.a1.T @ d
        da = d @ self.p["W2"].T
        dz = da * (1 - self.a1**2)
        g["b1"] = dz.sum(0)
        g["W1"] = self.x.T @ dz
        g["x"] = dz @ self.p["W1"].T
        return g


def fwd(x, W1, b1, W2, b2):
    net = MLP(dict(W1=W1, b1=b1, W2=W2, b2=b2))
    return net.forward(x), net


def bwd(d, net):
    return net.backward(d)


# ---- the case
TARGET = (fwd, bwd)
inputs = normal((4, 3), (3, 3), 3, (3, 2), 2)
WRONG = [
    (Wrong('g["b2"] = d.sum(0)', 'g["b2"] = d.mean(0)', "sum for mean"), Wrong("dz = da * (1 - self.a1**2)", "dz = da * (1 - self.z1**2)", "name"), Wrong('g["x"] = dz @ self.p["W1"].T', 'g["x"] = dz @ self.p["W1"]', "transpose")),
    (Wrong('g["W2"] = self.a1.T @ d', 'g["W2"] = self.z1.T @ d', "name"), Wrong('g["b1"] = dz.sum(0)', 'g["b1"] = da.sum(0)', "name")),
]
