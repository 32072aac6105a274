import numpy as np

from functools import reduce


def relu(x):
    return x * (x > 0)


class Trainer:
    """Parameters in a list of (W, b); the step returns the loss and a list of (dW, db)."""

    def loss_and_grads(self, layers, x, y):
        acts = [x]
        for i, (W, b) in enumerate(layers):
            z = acts[-1] @ W + b
            acts.append(relu(z) if i + 1 < len(layers) else z)
        d = (acts[-1] - y) / len(x)
        loss = 0.5 * len(x) * (d**2).sum()
        grads = [None] * len(layers)
        for i in range(len(layers) - 1, -1, -1):
            grads[i] = (acts[i].T @ d, d.sum(0))
            if i:
                d = (d @ layers[i][0].T) * (acts[i] > 0)
        return loss, grads


step = Trainer().loss_and_grads


# ---- the case
TARGET = step
CALL = "step"
OPTIONS = {"wrt": ("layers",)}
def inputs(rng):
    s = rng.standard_normal
    return [(s((3, 4)), s(4)), (s((4, 2)), s(2))], s((5, 3)), s((5, 2))
WRONG = [
    Wrong("(d @ layers[i][0].T) * (acts[i] > 0)", "d @ layers[i][0].T", "mask", (r"mask|relu|factor|missing|acts",)),
    Wrong("(acts[i].T @ d, d.sum(0))", "(acts[i].T @ d, d.mean(0))", "sum for mean"),
]
