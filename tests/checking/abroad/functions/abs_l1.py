import numpy as np


def l1(w, lam):
    return lam * np.abs(w).sum(), (w, lam)


def l1_back(d, cache):
    w, lam = cache
    return d * lam * np.sign(w), d * np.abs(w).sum()


# ---- the case
TARGET = (l1, l1_back)
def inputs(rng):
    w = rng.standard_normal(8)
    w[2] = w[5] = 0.0
    return w, 0.1
KINK = True
WRONG = [
    Wrong("d * lam * np.sign(w), ", "d * lam * w, ", "name", (r"sign|instead|belongs|should",)),
    Wrong("d * np.abs(w).sum()", "d * np.abs(w).mean()", "sum for mean"),
]
