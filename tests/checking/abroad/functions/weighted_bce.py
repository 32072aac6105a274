import numpy as np


def bce_logits(z, t, w, pos_weight):
    lw = 1 + (pos_weight - 1) * t
    m = np.maximum(-z, 0)
    per = w * ((1 - t) * z + lw * (m + np.log(np.exp(-m) + np.exp(-z - m))))
    return per.mean(), (z, t, w, lw, per)


def bce_logits_bwd(dl, cache):
    z, t, w, lw, per = cache
    s = 1 / (1 + np.exp(-z))
    dz = dl * w * ((1 - t) - lw * (1 - s)) / per.size
    return dz


# ---- the case
TARGET = (bce_logits, bce_logits_bwd)
OPTIONS = {"wrt": ("z",)}
def inputs(rng):
    return rng.standard_normal((4, 3)), rng.integers(0, 2, (4, 3)).astype(float), rng.random((4, 3)), 2.5
WRONG = [
    Wrong("lw * (1 - s)", "lw * s", "name", (r"1 [-−] s|belongs|sign|should|instead|derivative",)),
    Wrong("dl * w * (", "dl * (", "factor missing"),
]
