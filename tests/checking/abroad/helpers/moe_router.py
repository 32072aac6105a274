import numpy as np


def _softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _softmax_vjp(p, g):
    return p * (g - np.sum(p * g, -1, keepdims=True))


def moe(x, Wg, We):
    """Dense mixture: every expert sees every row. We (E, D, O)."""
    p = _softmax(x @ Wg)
    ys = np.einsum("nd,edo->neo", x, We)
    return np.einsum("ne,neo->no", p, ys), (x, Wg, We, p, ys)


def moe_vjp(g, cache):
    x, Wg, We, p, ys = cache
    dp = np.einsum("no,neo->ne", g, ys)
    dys = np.einsum("ne,no->neo", p, g)
    dz = _softmax_vjp(p, dp)
    dx = dz @ Wg.T + np.einsum("neo,edo->nd", dys, We)
    dWg = x.T @ dz
    dWe = np.einsum("nd,neo->edo", x, dys)
    return dx, dWg, dWe


# ---- the case
TARGET = (moe, moe_vjp)
inputs = normal((4, 3), (3, 2), (2, 3, 2))
WRONG = [
    Wrong("dx = dz @ Wg.T + np.einsum(", "dx = np.einsum(", "term missing"),
    Wrong("p * (g - np.sum(p * g, -1, keepdims=True))", "p * (g - np.sum(g, -1, keepdims=True))", "factor missing"),
    Wrong("dWg = x.T @ dz", "dWg = x.T @ dp", "name"),
]
