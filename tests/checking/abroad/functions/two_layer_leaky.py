import numpy as np

ALPHA = 0.1


def forward(x, W1, b1, W2, b2):
    z1 = x @ W1 + b1
    a1 = np.where(z1 > 0, z1, ALPHA * z1)
    z2 = a1 @ W2 + b2
    return z2, (x, z1, a1, W1, W2)


def backward(dz2, cache):
    x, z1, a1, W1, W2 = cache
    dW2 = a1.T @ dz2
    db2 = dz2.sum(0)
    da1 = dz2 @ W2.T
    dz1 = da1 * np.where(z1 > 0, 1.0, ALPHA)
    dW1 = x.T @ dz1
    db1 = dz1.sum(0)
    dx = dz1 @ W1.T
    return dx, dW1, db1, dW2, db2


# ---- the case
TARGET = (forward, backward)
inputs = normal((6, 4), (4, 5), 5, (5, 3), 3)
WRONG = [
    Wrong("np.where(z1 > 0, 1.0, ALPHA)", "np.where(z1 > 0, 1.0, 0.0)", "local derivative"),
    Wrong("dW2 = a1.T @ dz2", "dW2 = z1.T @ dz2", "name"),
    Wrong("dx = dz1 @ W1.T", "dx = da1 @ W1.T", "name"),
]
