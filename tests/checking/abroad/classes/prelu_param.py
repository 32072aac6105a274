import numpy as np


class PReLU:
    def __init__(self, channels):
        self.weight = np.full(channels, 0.25)
        self.grad_weight = np.zeros(channels)

    def forward(self, x):
        self.input = x
        return np.where(x > 0, x, self.weight * x)

    def backward(self, grad_output):
        neg = self.input <= 0
        self.grad_weight = (grad_output * self.input * neg).sum(axis=0)
        return np.where(neg, self.weight * grad_output, grad_output)


# ---- the case
TARGET = PReLU(4)
GRADS = {"self.weight": "self.grad_weight"}
inputs = normal((5, 4))
WRONG = [
    Wrong("(grad_output * self.input * neg).sum(axis=0)", "(grad_output * self.input).sum(axis=0)", "mask", (r"mask|neg|where|missing|factor|right except",)),
    Wrong("np.where(neg, self.weight * grad_output, grad_output)", "np.where(neg, self.weight, 1.0)", "factor missing", (r"grad_output|factor|missing|cotangent",)),
]
