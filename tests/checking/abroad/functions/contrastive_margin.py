import numpy as np


def contrastive(a, b, same, margin):
    d = np.sqrt(((a - b) ** 2).sum(1) + 1e-12)
    loss = same * d**2 + (1 - same) * np.maximum(margin - d, 0) ** 2
    return loss.sum() / 2, (a, b, same, margin, d)


def contrastive_bwd(g, cache):
    a, b, same, margin, d = cache
    dd = same * d - (1 - same) * np.maximum(margin - d, 0)
    da = g * (dd / d)[:, None] * (a - b)
    return da, -da


# ---- the case
TARGET = (contrastive, contrastive_bwd)
OPTIONS = {"wrt": ("a", "b")}
def inputs(rng):
    return rng.standard_normal((5, 3)), rng.standard_normal((5, 3)), np.array([1, 0, 0, 1, 0]), 3.0
WRONG = [
    Wrong("same * d - (1 - same)", "same * d + (1 - same)", "sign"),
    Wrong("(dd / d)[:, None]", "dd[:, None]", "factor missing"),
    Wrong("return da, -da", "return da, da", "sign"),
]
