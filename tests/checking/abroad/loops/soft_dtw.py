import numpy as np


def soft_dtw(D, gamma):
    n, m = D.shape
    R = np.full((n + 1, m + 1), np.inf)
    R[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            r = -np.array([R[i - 1, j], R[i, j - 1], R[i - 1, j - 1]]) / gamma
            mx = r.max()
            R[i, j] = D[i - 1, j - 1] - gamma * (mx + np.log(np.exp(r - mx).sum()))
    return R[n, m], (D, gamma, R)


def soft_dtw_grad(g, cache):
    D, gamma, R = cache
    n, m = D.shape
    E = np.zeros((n + 2, m + 2))
    E[n, m] = g
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            for a, b in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                if a <= n and b <= m:
                    E[i, j] += E[a, b] * np.exp((R[a, b] - D[a - 1, b - 1] - R[i, j]) / gamma)
    return E[1:n + 1, 1:m + 1]


# ---- the case
TARGET = (soft_dtw, soft_dtw_grad)
OPTIONS = {"wrt": ("D",)}
def inputs(rng):
    return rng.random((3, 3)), 0.5
WRONG = [
    Wrong("- D[a - 1, b - 1] - R[i, j]", "- D[i - 1, j - 1] - R[i, j]", "index"),
    Wrong("((i + 1, j), (i, j + 1), (i + 1, j + 1))", "((i + 1, j), (i, j + 1))", "term missing"),
]
