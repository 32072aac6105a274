import numpy as np


def normalize_iter(A, v):
    """Four rounds of power iteration, unrolled."""
    trace = []
    k = 0
    while k < 4:
        w = A @ v
        n = np.sqrt(w @ w)
        trace.append((v, w, n))
        v = w / n
        k += 1
    return v, (A, trace)


def normalize_iter_vjp(g, cache):
    A, trace = cache
    dA = np.zeros_like(A)
    k = len(trace)
    while k > 0:
        k -= 1
        v, w, n = trace[k]
        dw = g / n - w * (w @ g) / n**3
        dA += np.outer(dw, v)
        g = A.T @ dw
    return dA, g


# ---- the case
TARGET = (normalize_iter, normalize_iter_vjp)
def inputs(rng):
    return rng.standard_normal((3, 3)) + 2 * np.eye(3), rng.standard_normal(3)
WRONG = [
    Wrong("w * (w @ g) / n**3", "w * (w @ g) / n**2", "exponent"),
    Wrong("g / n - w * (w @ g) / n**3", "g / n", "term missing"),
    Wrong("g = A.T @ dw", "g = A @ dw", "transpose"),
]
