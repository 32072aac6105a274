import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def step(w, b, X, y):
    """Cost and gradients of logistic regression; X is (n_features, m)."""
    m = X.shape[1]
    A = sigmoid(np.dot(w.T, X) + b)
    cost = -(1 / m) * np.sum(y * np.log(A) + (1 - y) * np.log(1 - A))
    dw = (1 / m) * np.dot(X, (A - y).T)
    db = (1 / m) * np.sum(A - y)
    return cost, {"dw": dw, "db": db}


# ---- the case
TARGET = step
CALL = "step"
OPTIONS = {"wrt": ("w", "b")}
def inputs(rng):
    return rng.standard_normal((3, 1)), 0.2, rng.standard_normal((3, 7)), rng.integers(0, 2, (1, 7))
WRONG = [
    Wrong("(1 / m) * np.sum(A - y)", "np.sum(A - y)", "factor missing"),
    Wrong("np.dot(X, (A - y).T)", "np.dot(X, (y - A).T)", "sign"),
]
