import numpy as np


def forward(x, g):
    n2 = (x * x).sum(1, keepdims=True)
    n = np.sqrt(n2 + 1e-8)
    u = x / n
    return u * g, (x, n, u, g)


def backward(dy, cache):
    x, n, u, g = cache
    dg = (dy * u).sum(0)
    du = dy * g
    dn = -(du * x).sum(1, keepdims=True) / n**2
    dx = du / n
    dn2 = 0.5 * dn / n
    dx += 2 * x * dn2
    return dx, dg


# ---- the case
TARGET = (forward, backward)
inputs = normal((4, 3), 3)
WRONG = [
    (Wrong("dg = (dy * u).sum(0)", "dg = (dy * x).sum(0)", "name"), Wrong("dn2 = 0.5 * dn / n", "dn2 = dn / n", "factor missing")),
    (Wrong("/ n**2", "/ n", "exponent"), Wrong("dg = (dy * u).sum(0)", "dg = (dy * u).mean(0)", "sum for mean")),
]
