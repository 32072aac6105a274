import numpy as np


def poly_features(x, degree, coef):
    """degree is an int, coef has degree + 1 entries"""
    powers = np.stack([x**k for k in range(degree + 1)], axis=-1)
    return powers @ coef, (x, degree, coef, powers)


def poly_features_back(dy, cache):
    x, degree, coef, powers = cache
    dcoef = powers.T @ dy
    dx = np.zeros_like(x)
    for k in range(1, degree + 1):
        dx += dy * coef[k] * k * x ** (k - 1)
    return dx, dcoef


# ---- the case
TARGET = (poly_features, poly_features_back)
OPTIONS = {"wrt": ("x", "coef")}
def inputs(rng):
    return rng.standard_normal(6), 3, rng.standard_normal(4)
WRONG = [
    Wrong("coef[k] * k * x ** (k - 1)", "coef[k] * x ** (k - 1)", "factor missing"),
    Wrong("range(1, degree + 1)", "range(1, degree)", "index", (r"range|loop|last|step|term|missing|index",)),
]
