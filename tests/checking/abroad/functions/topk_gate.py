import numpy as np


def topk_gate(x, k):
    """Softmax over the k largest of each row, zero elsewhere."""
    idx = np.argsort(-x, axis=1, kind="stable")[:, :k]
    top = np.take_along_axis(x, idx, 1)
    e = np.exp(top - top[:, :1])
    p = e / e.sum(1, keepdims=True)
    y = np.zeros_like(x)
    np.put_along_axis(y, idx, p, 1)
    return y, (idx, p, x.shape)


def topk_gate_bwd(dy, cache):
    idx, p, shape = cache
    d = np.take_along_axis(dy, idx, 1)
    dtop = p * (d - (d * p).sum(1, keepdims=True))
    dx = np.zeros(shape)
    np.put_along_axis(dx, idx, dtop, 1)
    return dx


# ---- the case
TARGET = (topk_gate, topk_gate_bwd)
def inputs(rng):
    return rng.standard_normal((4, 6)), 3
WRONG = [
    Wrong("(d - (d * p).sum(1, keepdims=True))", "(d - (dy * dy).sum(1, keepdims=True))", "name", (r"p\b|belongs|should|instead|sum",)),
    Wrong("(d - (d * p).sum(1, keepdims=True))", "d", "term missing"),
]
