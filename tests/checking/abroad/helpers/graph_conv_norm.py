import numpy as np


def norm_adj(A):
    d = A.sum(1)
    return A / np.sqrt(np.outer(d, d))


def gcn(X, W1, W2, A):
    S = norm_adj(A + np.eye(len(A)))
    P1 = S @ X @ W1
    H = np.maximum(P1, 0)
    return S @ H @ W2, (S, X, W1, W2, P1, H)


def gcn_back(dZ, cache):
    S, X, W1, W2, P1, H = cache
    SdZ = S.T @ dZ
    dW2 = H.T @ SdZ
    dP1 = (SdZ @ W2.T) * (P1 > 0)
    SdP = S.T @ dP1
    return SdP @ W1.T, X.T @ SdP, dW2


# ---- the case
TARGET = (gcn, gcn_back)
OPTIONS = {"wrt": ("X", "W1", "W2")}
def inputs(rng):
    A = (rng.random((4, 4)) > 0.5).astype(float)
    return rng.standard_normal((4, 3)), rng.standard_normal((3, 3)), rng.standard_normal((3, 2)), A
WRONG = [
    Wrong("SdP = S.T @ dP1", "SdP = dP1", "factor missing", (r"S\b|missing|factor",)),
    Wrong("(SdZ @ W2.T) * (P1 > 0)", "(dZ @ W2.T) * (P1 > 0)", "name"),
]
