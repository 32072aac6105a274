import numpy as np


class Dense:
    def __init__(self, a, b, rng):
        self.W = rng.randn(a, b) * 0.5
        self.b = rng.randn(b) * 0.1

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad):
        self.dW = self.x.T @ grad
        self.db = np.sum(grad, axis=0)
        return grad @ self.W.T


class Tanh:
    def forward(self, x):
        self.out = np.tanh(x)
        return self.out

    def backward(self, grad):
        return grad * (1 - self.out ** 2)


class Residual:
    def __init__(self, layers):
        self.layers = layers

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = layer.forward(h)
        return h + x

    def backward(self, grad):
        g = grad
        for layer in reversed(self.layers):
            g = layer.backward(g)
        return g + grad


class Net:
    def __init__(self):
        rng = np.random.RandomState(3)
        self.block = Residual([Dense(4, 4, rng), Tanh(), Dense(4, 4, rng)])
        self.head = Dense(4, 2, rng)

    def forward(self, x):
        return self.head.forward(self.block.forward(x))

    def backward(self, grad):
        return self.block.backward(self.head.backward(grad))


# ---- the case
TARGET = Net()
inputs = normal((5, 4))
GRADS = {"self.head.W": "self.head.dW"}
WRONG = [
    Wrong("return g + grad", "return g", "term missing"),
    Wrong("return grad * (1 - self.out ** 2)", "return grad * (1 - self.out)", "local derivative", (r"power|square|factor|1 [−-]|derivative",)),
    Wrong("self.dW = self.x.T @ grad", "self.dW = self.x.T @ grad / len(grad)", "factor extra"),
]
