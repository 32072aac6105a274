import numpy as np


class Affine:
    def __init__(self, name, params, grads):
        self.name, self.params, self.grads = name, params, grads

    def forward(self, x):
        self.x = x
        return x.dot(self.params["W" + self.name]) + self.params["b" + self.name]

    def backward(self, dout):
        self.grads["W" + self.name] = self.x.T.dot(dout)
        self.grads["b" + self.name] = dout.sum(axis=0)
        return dout.dot(self.params["W" + self.name].T)


class Elu:
    def forward(self, x):
        self.out = np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)
        return self.out

    def backward(self, dout):
        return dout * np.where(self.out > 0, 1, self.out + 1)


def mlp(x, W1, b1, W2, b2):
    params = dict(W1=W1, b1=b1, W2=W2, b2=b2)
    grads = {}
    stack = [Affine("1", params, grads), Elu(), Affine("2", params, grads)]
    for layer in stack:
        x = layer.forward(x)
    return x, (stack, grads)


def mlp_grad(dout, cache):
    stack, grads = cache
    for layer in stack[::-1]:
        dout = layer.backward(dout)
    grads["x"] = dout
    return grads


# ---- the case
TARGET = (mlp, mlp_grad)
inputs = normal((4, 3), (3, 5), 5, (5, 2), 2)
WRONG = [
    Wrong("np.where(self.out > 0, 1, self.out + 1)", "np.where(self.out > 0, 1, self.out)", "local derivative", (r"1|derivative|slope|missing|should",)),
    Wrong('return dout.dot(self.params["W" + self.name].T)', 'return -dout.dot(self.params["W" + self.name].T)', "sign"),
]
