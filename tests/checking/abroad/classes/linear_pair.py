import numpy as np


class Linear:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def __call__(self, x):
        self.inp = x
        self.out = self.inp @ self.w + self.b
        return self.out

    def backward(self, g):
        self.inp_g = g @ self.w.T
        self.w_g = self.inp.T @ g
        self.b_g = g.sum(0)
        return self.inp_g


class Relu:
    def __call__(self, x):
        self.inp = x
        return np.maximum(x, 0.0)

    def backward(self, g):
        return (self.inp > 0) * g


def model(x, w1, b1, w2, b2):
    layers = [Linear(w1, b1), Relu(), Linear(w2, b2)]
    for l in layers:
        x = l(x)
    return x, layers


def model_backward(g, layers):
    for l in reversed(layers):
        g = l.backward(g)
    return g, layers[0].w_g, layers[0].b_g, layers[2].w_g, layers[2].b_g


# ---- the case
TARGET = (model, model_backward)
inputs = normal((5, 4), (4, 6), 6, (6, 2), 2)
WRONG = [
    Wrong("self.b_g = g.sum(0)", "self.b_g = g[0]", "axis", (r"sum|rows|axis|first",)),
    Wrong("(self.inp > 0) * g", "(self.inp < 0) * g", "mask"),
    Wrong("self.w_g = self.inp.T @ g", "self.w_g = self.inp.T @ g / self.inp.shape[0]", "factor extra"),
]
