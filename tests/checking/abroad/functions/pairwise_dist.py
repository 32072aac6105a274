import numpy as np


def pdist(a, b):
    """Squared distances (N, M) of rows, and the mean of the smallest per row."""
    diff = a[:, None, :] - b[None, :, :]
    d = np.sqrt((diff ** 2).sum(-1) + 1e-8)
    soft = np.exp(-d)
    p = soft / soft.sum(1, keepdims=True)
    return (p * d).sum(1), (diff, d, p)


def pdist_backward(dout, cache):
    diff, d, p = cache
    row = dout[:, None]
    dd = p * row
    dp = d * row
    ds = p * (dp - (dp * p).sum(1, keepdims=True))
    dd = dd - ds
    ddiff = dd[:, :, None] * diff / d[:, :, None]
    return ddiff.sum(1), -ddiff.sum(0)


# ---- the case
TARGET = (pdist, pdist_backward)
inputs = normal((4, 3), (5, 3))
WRONG = [
    Wrong("dd = dd - ds", "dd = dd + ds", "sign"),
    Wrong("return ddiff.sum(1), -ddiff.sum(0)", "return ddiff.sum(1), ddiff.sum(0)", "sign"),
    Wrong("diff / d[:, :, None]", "diff", "factor missing"),
    Wrong("ds = p * (dp - (dp * p).sum(1, keepdims=True))", "ds = p * (1 - p) * dp", "term missing", (r"softmax|Jacobian|sum|missing|diagonal",)),
]
