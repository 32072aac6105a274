import numpy as np


def mahalanobis(x, mu, P):
    d = x - mu
    y = np.einsum("ni,ij,nj->n", d, P, d)
    d.flags.writeable = False
    return y, (d, P)


def mahalanobis_bwd(dy, cache):
    d, P = cache
    dd = dy[:, None] * (d @ (P + P.T))
    dP = np.einsum("n,ni,nj->ij", dy, d, d)
    return dd, -dd.sum(axis=0), dP


# ---- the case
TARGET = (mahalanobis, mahalanobis_bwd)
inputs = normal((5, 3), 3, (3, 3))
WRONG = [
    Wrong("d @ (P + P.T)", "2 * d @ P", "transpose", (r"transpos|P\.T|Pᵀ|symmetr|term",)),
    Wrong("-dd.sum(axis=0)", "-dd.mean(axis=0)", "sum for mean"),
]
