import numpy as np


def gaussian_nll(L, r):
    """0.5 |L^-1 r|^2 + log det L for lower-triangular L."""
    z = np.linalg.solve(L, r)
    return 0.5 * z @ z + np.log(np.diag(L)).sum(), (L, z)


def gaussian_nll_grad(g, cache):
    L, z = cache
    u = np.linalg.solve(L.T, z)
    dr = g * u
    dL = -g * np.outer(u, z) + g * np.diag(1 / np.diag(L))
    return dL, dr


# ---- the case
TARGET = (gaussian_nll, gaussian_nll_grad)
def inputs(rng):
    return np.tril(rng.standard_normal((4, 4)), -1) + np.diag(1 + rng.random(4)), rng.standard_normal(4)
WRONG = [
    Wrong("np.outer(u, z)", "np.outer(z, u)", "swapped", (r"swap|transpos|order",)),
    Wrong(" + g * np.diag(1 / np.diag(L))", "", "term missing"),
]
