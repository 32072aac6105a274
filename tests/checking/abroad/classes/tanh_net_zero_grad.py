import numpy as np


class Param:
    def __init__(self, value):
        self.value = value
        self.grad = np.zeros_like(value)

    def zero_grad(self):
        self.grad = np.zeros_like(self.value)


class Net:
    def __init__(self, d, h):
        self.fc = Param(np.random.randn(d, h))
        self.bias = Param(np.random.randn(h))
        self.out = Param(np.random.randn(h))

    def parameters(self):
        return [self.fc, self.bias, self.out]

    def forward(self, x):
        self.x = x
        self.a = np.tanh(x @ self.fc.value + self.bias.value)
        return self.a @ self.out.value

    def backward(self, g):
        for p in self.parameters():
            p.zero_grad()
        self.out.grad += self.a.T @ g
        da = np.outer(g, self.out.value)
        dz = da * (1 - self.a**2)
        self.fc.grad += self.x.T @ dz
        self.bias.grad += dz.sum(axis=0)
        return dz @ self.fc.value.T


# ---- the case
TARGET = Net(3, 4)
GRADS = {"self.fc.value": "self.fc.grad", "self.bias.value": "self.bias.grad", "self.out.value": "self.out.grad"}
inputs = normal((5, 3))
WRONG = [
    Wrong("(1 - self.a**2)", "(1 - self.a)**2", "local derivative"),
    Wrong("return dz @ self.fc.value.T", "return da @ self.fc.value.T", "name"),
    Wrong("self.out.grad += self.a.T @ g", "self.out.grad += -self.a.T @ g", "sign"),
]
