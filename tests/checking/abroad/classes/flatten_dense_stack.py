import numpy as np


class Module:
    def __call__(self, *a):
        return self.forward(*a)


class Flatten(Module):
    def forward(self, x):
        self.s = x.shape
        return x.reshape(len(x), -1)

    def backward(self, d):
        return d.reshape(self.s)


class Dense(Module):
    def __init__(self, W):
        self.W = W

    def forward(self, x):
        self.x = x
        return x @ self.W.T

    def backward(self, d):
        self.dW = d.T @ self.x
        return d @ self.W


class Softsign(Module):
    def forward(self, x):
        self.d = 1 + x * x
        self.x = x
        return x / np.sqrt(self.d)

    def backward(self, g):
        return g * self.d**-1.5


class Sequential(Module):
    def __init__(self, *mods):
        self.mods = mods

    def forward(self, x):
        for m in self.mods:
            x = m(x)
        return x

    def backward(self, d):
        for m in reversed(self.mods):
            d = m.backward(d)
        return d


def net(x, W1, W2):
    s = Sequential(Flatten(), Dense(W1), Softsign(), Dense(W2))
    return s(x), s


def net_grad(d, s):
    dx = s.backward(d)
    return dx, s.mods[1].dW, s.mods[3].dW


# ---- the case
TARGET = (net, net_grad)
inputs = normal((3, 2, 2), (4, 4), (2, 4))
WRONG = [
    Wrong("g * self.d**-1.5", "g * self.d**-0.5", "exponent"),
    Wrong("self.dW = d.T @ self.x", "self.dW = (d / len(d)).T @ self.x", "factor extra"),
]
