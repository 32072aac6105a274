import functools

import numpy as np


def cached(fn):
    store = {}

    @functools.wraps(fn)
    def wrapper(*args):
        out, keep = fn(*args)
        store["keep"] = keep
        return out
    wrapper.store = store
    return wrapper


@cached
def bilinear(a, M, b):
    left = a @ M
    return np.sum(left * b, axis=1), (a, M, b, left)


def bilinear_backward(dout):
    a, M, b, left = bilinear.store["keep"]
    g = dout[:, None]
    db = g * left
    dleft = g * b
    dM = a.T @ dleft
    da = dleft @ M.T
    return da, dM, db


# ---- the case
TARGET = (bilinear, bilinear_backward)
CALL = "dy"
inputs = normal((4, 3), (3, 2), (4, 2))
WRONG = [
    Wrong("db = g * left", "db = g * b", "name"),
    Wrong("da = dleft @ M.T", "da = g * b @ M.T / 2", "factor extra"),
]
