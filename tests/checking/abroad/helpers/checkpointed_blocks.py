import numpy as np


def block(x, w):
    h = np.tanh(x @ w)
    return x + h, h


def block_back(g, x, w):
    _, h = block(x, w)  # recompute
    dz = g * (1 - h * h)
    return g + dz @ w.T, x.T @ dz


def forward(x, w1, w2, w3):
    keep = []
    for w in (w1, w2, w3):
        keep.append((x, w))
        x, _ = block(x, w)
    return x, keep


def backward(g, keep):
    dws = []
    for x, w in keep[::-1]:
        g, dw = block_back(g, x, w)
        dws.append(dw)
    return (g, *dws[::-1])


# ---- the case
TARGET = (forward, backward)
inputs = normal((3, 2), (2, 2), (2, 2), (2, 2))
WRONG = [
    Wrong("return (g, *dws[::-1])", "return (g, *dws)", "order", (r"order|revers|swap|place|belongs",)),
    Wrong("return g + dz @ w.T, x.T @ dz", "return dz @ w.T, x.T @ dz", "term missing"),
    Wrong("_, h = block(x, w)", "h, _ = block(x, w)", "name", (r"h\b|belongs|swap|instead|index",)),
]
