import numpy as np


def train_step(W1, b1, W2, b2, X, Y):
    """Sigmoid hidden layer, squared error; returns the loss and all gradients."""
    m = X.shape[1]
    Z1 = W1 @ X + b1
    A1 = 1 / (1 + np.exp(-Z1))
    Z2 = W2 @ A1 + b2
    loss = ((Z2 - Y) ** 2).sum() / (2 * m)

    dZ2 = (Z2 - Y) / m
    dW2 = dZ2 @ A1.T
    db2 = dZ2.sum(axis=1, keepdims=True)
    dA1 = W2.T @ dZ2
    dZ1 = dA1 * A1 * (1 - A1)
    dW1 = dZ1 @ X.T
    db1 = dZ1.sum(axis=1, keepdims=True)
    return loss, (dW1, db1, dW2, db2)


# ---- the case
TARGET = train_step
CALL = "step"
OPTIONS = {"wrt": ("W1", "b1", "W2", "b2")}
inputs = normal((4, 3), (4, 1), (2, 4), (2, 1), (3, 6), (2, 6))
WRONG = [
    Wrong("dZ2 = (Z2 - Y) / m", "dZ2 = 2 * (Z2 - Y) / m", "factor extra"),
    Wrong("dZ1 = dA1 * A1 * (1 - A1)", "dZ1 = dA1 * Z1 * (1 - Z1)", "name", (r"A1|belongs|instead|derivative|should",)),
    Wrong("db2 = dZ2.sum(axis=1, keepdims=True)", "db2 = dZ2.mean(axis=1, keepdims=True)", "sum for mean"),
    Wrong("return loss, (dW1, db1, dW2, db2)", "return loss, (dW1, db1, -dW2, db2)", "sign"),
]
