import numpy as np


def loss_grad(theta, X, t, lam):
    r = X @ theta - t
    n = len(t)
    loss = 0.5 * (r @ r) / n + 0.5 * lam * theta[1:] @ theta[1:]
    g = X.T @ r / n
    g[1:] += lam * theta[1:]   # the intercept is not penalised
    return loss, g


# ---- the case
TARGET = loss_grad
CALL = "step"
OPTIONS = {"wrt": ("theta",)}
def inputs(rng):
    return rng.standard_normal(4), rng.standard_normal((6, 4)), rng.standard_normal(6), 0.5
WRONG = [
    Wrong("    g[1:] += lam * theta[1:] ", "    g += lam * theta ", "index", (r"elements?|index|intercept|first|slice|extra",)),
    Wrong("X.T @ r / n", "X.T @ r", "factor missing"),
]
