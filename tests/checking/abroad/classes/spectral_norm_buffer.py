import numpy as np


class ScaledDense:
    """Weights divided by their Frobenius norm; the norm is treated as part of the graph."""

    def __init__(self, v, g):
        self.v, self.g = v, g

    def __call__(self, x):
        self.x = x
        self.n = np.linalg.norm(self.v)
        self.w = self.g * self.v / self.n
        return x @ self.w

    def grad(self, dy):
        dw = self.x.T @ dy
        dg = (dw * self.v).sum() / self.n
        dv = self.g / self.n * dw - self.g * dg / self.n**2 * self.v
        return dy @ self.w.T, dv, dg


def weight_norm(x, v, g):
    m = ScaledDense(v, g)
    return m(x), m


def weight_norm_grad(dy, m):
    return m.grad(dy)


# ---- the case
TARGET = (weight_norm, weight_norm_grad)
def inputs(rng):
    return rng.standard_normal((4, 3)), rng.standard_normal((3, 2)), 1.4
WRONG = [
    Wrong(" - self.g * dg / self.n**2 * self.v", "", "term missing"),
    Wrong("self.g * dg / self.n**2 * self.v", "self.g * dg / self.n * self.v", "exponent"),
    Wrong("(dw * self.v).sum() / self.n", "(dw * self.v).sum()", "factor missing"),
]
