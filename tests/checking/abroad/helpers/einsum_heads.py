import numpy as np


def mha_scores(q, k):
    """q: (batch, i, head, d), k: (batch, j, head, d) -> (batch, head, i, j)"""
    s = np.einsum("bihd,bjhd->bhij", q, k) / q.shape[-1] ** 0.5
    return s, (q, k)


def mha_scores_bwd(ds, cache):
    q, k = cache
    scale = 1 / q.shape[-1] ** 0.5
    dq = np.einsum("bhij,bjhd->bihd", ds, k) * scale
    dk = np.einsum("bhij,bihd->bjhd", ds, q) * scale
    return dq, dk


# ---- the case
TARGET = (mha_scores, mha_scores_bwd)
inputs = normal((2, 3, 2, 3), (2, 3, 2, 3))
WRONG = [
    Wrong('"bhij,bihd->bjhd"', '"bhji,bihd->bjhd"', "einsum"),
    Wrong("ds, k) * scale", "ds, k)", "factor missing"),
]
