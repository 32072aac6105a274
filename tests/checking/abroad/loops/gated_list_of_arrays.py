import numpy as np


def mlp(x, weights):
    """weights: a list of matrices, tanh between"""
    hs = [x]
    for i, W in enumerate(weights):
        z = hs[-1] @ W
        hs.append(z if i == len(weights) - 1 else np.tanh(z))
    return hs[-1], (hs, weights)


def mlp_backward(d, cache):
    hs, weights = cache
    grads = []
    for i in reversed(range(len(weights))):
        if i < len(weights) - 1:
            d = d * (1 - hs[i + 1] ** 2)
        grads.insert(0, hs[i].T @ d)
        d = d @ weights[i].T
    return d, grads


# ---- the case
TARGET = (mlp, mlp_backward)
def inputs(rng):
    return rng.standard_normal((4, 3)), [rng.standard_normal(s) for s in ((3, 3), (3, 3), (3, 3))]
WRONG = [
    Wrong("grads.insert(0, hs[i].T @ d)", "grads.append(hs[i].T @ d)", "order", (r"order|revers|swap|append|place",)),
    Wrong("d * (1 - hs[i + 1] ** 2)", "d * (1 - hs[i] ** 2)", "index"),
]
