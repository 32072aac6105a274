import numpy as np


def scaled_tanh(x, s):
    x32 = x.astype(np.float32)
    y = np.tanh(x32 * np.float32(s))
    return y, (x32, np.float32(s), y)


def scaled_tanh_bwd(dy, cache):
    x, s, y = cache
    d = dy * (1 - y * y)
    return d * s, (d * x).sum()


# ---- the case
TARGET = (scaled_tanh, scaled_tanh_bwd)
NARROWEST = "float32"
def inputs(rng):
    return rng.standard_normal((4, 3)), 1.5
WRONG = [
    Wrong("return d * s, (d * x).sum()", "return d, (d * x).sum()", "factor missing"),
    Wrong("d = dy * (1 - y * y)", "d = dy * (1 + y * y)", "sign"),
]
