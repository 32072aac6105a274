import numpy as np


def row_norms(x):
    n = np.sqrt((x * x).sum(axis=1))
    return n, (x, n)


def row_norms_grad(dn, cache):
    x, n = cache
    safe = np.where(n > 0, n, 1.0)
    return (dn / safe)[:, None] * x


# ---- the case
TARGET = (row_norms, row_norms_grad)
KINK = True
def inputs(rng):
    x = rng.standard_normal((5, 3))
    x[2] = 0
    return (x,)
WRONG = [
    Wrong("(dn / safe)[:, None] * x", "(dn * safe)[:, None] * x", "factor wrong", (r"factor|power|expon|divid|multipl|operator|/",)),
    Wrong("(dn / safe)[:, None] * x", "dn[:, None] * x", "factor missing"),
]
