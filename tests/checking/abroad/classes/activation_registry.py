import numpy as np

ACT = {
    "tanh": (np.tanh, lambda x, y: 1 - y**2),
    "square": (np.square, lambda x, y: 2 * x),
    "gauss": (lambda x: np.exp(-x * x), lambda x, y: -2 * x * y),
}


class Layer:
    def __init__(self, w, act):
        self.w = w
        self.f, self.df = ACT[act]

    def forward(self, x):
        self.x = x
        self.z = x @ self.w
        self.y = self.f(self.z)
        return self.y

    def backward(self, dy):
        dz = dy * self.df(self.z, self.y)
        self.dw = self.x.T @ dz
        return dz @ self.w.T


def net(x, w1, w2, w3):
    layers = [Layer(w1, "tanh"), Layer(w2, "gauss"), Layer(w3, "square")]
    for l in layers:
        x = l.forward(x)
    return x, layers


def net_back(d, layers):
    for l in layers[::-1]:
        d = l.backward(d)
    return (d, *[l.dw for l in layers])


# ---- the case
TARGET = (net, net_back)
inputs = normal((4, 3), (3, 3), (3, 3), (3, 2))
WRONG = [
    Wrong("lambda x, y: -2 * x * y", "lambda x, y: -2 * x", "factor missing"),
    Wrong("self.df(self.z, self.y)", "self.df(self.y, self.z)", "swapped"),
    Wrong("lambda x, y: 2 * x)", "lambda x, y: 2 * y)", "name"),
]
