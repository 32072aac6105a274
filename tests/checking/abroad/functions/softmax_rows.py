import numpy as np


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return p, p


def softmax_grad(g, p):
    s = (g * p).sum(axis=1, keepdims=True)
    return p * (g - s)


# ---- the case
TARGET = (softmax, softmax_grad)
inputs = normal((5, 4))
WRONG = [
    Wrong("return p * (g - s)", "return p * (1 - p) * g", "term missing", (r"missing", r"diagonal|off-diag", r"Jacobian", r"1 − p|1 - p")),
    Wrong("(g * p).sum(axis=1, keepdims=True)", "g.sum(axis=1, keepdims=True)", "factor missing"),
]
