import numpy as np


def _logaddexp_parts(a, b):
    m = np.maximum(a, b)
    ea, eb = np.exp(a - m), np.exp(b - m)
    s = ea + eb
    return m + np.log(s), ea / s, eb / s


def mixture(x, mu1, mu2, logit):
    """log of w N(x; mu1) + (1 - w) N(x; mu2) up to a constant"""
    w = 1 / (1 + np.exp(-logit))
    l1 = np.log(w) - 0.5 * (x - mu1) ** 2
    l2 = np.log(1 - w) - 0.5 * (x - mu2) ** 2
    y, r1, r2 = _logaddexp_parts(l1, l2)
    return y, (x, mu1, mu2, w, r1, r2)


def mixture_grad(dy, cache):
    x, mu1, mu2, w, r1, r2 = cache
    d1, d2 = dy * r1, dy * r2
    dx = -d1 * (x - mu1) - d2 * (x - mu2)
    dlogit = np.sum(d1 * (1 - w) - d2 * w)
    return dx, np.sum(d1 * (x - mu1)), np.sum(d2 * (x - mu2)), dlogit


# ---- the case
TARGET = (mixture, mixture_grad)
def inputs(rng):
    return rng.standard_normal(6), -0.8, 0.9, 0.3
WRONG = [
    Wrong("d1 * (1 - w) - d2 * w", "d1 * (1 - w) + d2 * w", "sign"),
    Wrong("np.sum(d2 * (x - mu2)), dlogit", "np.sum(d1 * (x - mu2)), dlogit", "name"),
]
