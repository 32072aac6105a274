import numpy as np


class MSELoss:
    def __call__(self, pred, target):
        self.diff = pred - target
        return float(np.mean(self.diff**2))

    def backward(self, upstream=1.0):
        return upstream * 2 * self.diff / self.diff.size


criterion = MSELoss()


def loss(pred, target):
    return criterion(pred, target)


def dloss(upstream):
    g = criterion.backward(upstream)
    return g, -g


# ---- the case
TARGET = (loss, dloss)
CALL = "dy"
inputs = normal((4, 2), (4, 2))
WRONG = [
    Wrong("self.diff / self.diff.size", "self.diff / len(self.diff)", "factor wrong"),
    Wrong("return g, -g", "return g, g", "sign"),
]
