import numpy as np


def maxout(x, W, b):
    """W (k, D, M): the largest of k affine maps."""
    z = np.einsum("nd,kdm->knm", x, W) + b[:, None, :]
    which = z.argmax(axis=0)
    return z.max(axis=0), (x, W, which)


def maxout_backward(cache, dout):
    x, W, which = cache
    k = W.shape[0]
    sel = (which[None] == np.arange(k)[:, None, None]) * dout[None]
    dW = np.einsum("nd,knm->kdm", x, sel)
    db = sel.sum(axis=1)
    dx = np.einsum("knm,kdm->nd", sel, W)
    return dx, dW, db


# ---- the case
TARGET = (maxout, maxout_backward)
CALL = "cache, dy"
inputs = normal((4, 3), (2, 3, 2), (2, 2))
WRONG = [
    Wrong("db = sel.sum(axis=1)", "db = sel.mean(axis=1)", "sum for mean"),
    Wrong("* dout[None]\n", "\n", "factor missing", (r"dout|factor|cotangent|missing",)),
]
