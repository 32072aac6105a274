import numpy as np


def mf(P, Q, bu, users, items, ratings, reg):
    pred = np.sum(P[users] * Q[items], axis=1) + bu[users]
    err = ratings - pred
    loss = np.sum(err**2) + reg * (np.sum(P**2) + np.sum(Q**2))
    gP, gQ, gb = 2 * reg * P, 2 * reg * Q, np.zeros_like(bu)
    for u, i, e in zip(users, items, err):
        gP[u] -= 2 * e * Q[i]
        gQ[i] -= 2 * e * P[u]
        gb[u] -= 2 * e
    return loss, (gP, gQ, gb)


# ---- the case
TARGET = mf
CALL = "step"
OPTIONS = {"wrt": ("P", "Q", "bu")}
def inputs(rng):
    s = rng.standard_normal
    return s((3, 2)), s((4, 2)), s(3), np.array([0, 1, 1, 2, 0]), np.array([1, 1, 3, 0, 2]), s(5), 0.1
WRONG = [
    Wrong("gQ[i] -= 2 * e * P[u]", "gQ[i] -= 2 * e * gP[u]", "name"),
    Wrong("gb[u] -= 2 * e", "gb[u] = -2 * e", "accumulate"),
    Wrong("gP, gQ, gb = 2 * reg * P,", "gP, gQ, gb = reg * P,", "factor missing"),
]
