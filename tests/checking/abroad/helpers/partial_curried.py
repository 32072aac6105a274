import numpy as np
from functools import partial


def norm_p(x, p, eps):
    s = (np.abs(x) ** p).sum(-1) + eps
    return s ** (1 / p), (x, s)


def norm_p_grad(dy, cache, p):
    x, s = cache
    k = dy * s ** (1 / p - 1)
    return k[:, None] * np.abs(x) ** (p - 1) * np.sign(x)


norm4 = partial(norm_p, p=4, eps=1e-6)
norm4_grad = partial(norm_p_grad, p=4)


# ---- the case
TARGET = (norm4, norm4_grad)
inputs = normal((4, 3))
WRONG = [
    Wrong("s ** (1 / p - 1)", "s ** (1 / p)", "exponent"),
    Wrong("np.abs(x) ** (p - 1) * np.sign(x)", "np.abs(x) ** (p - 1)", "sign", (r"sign|factor|missing",)),
]
