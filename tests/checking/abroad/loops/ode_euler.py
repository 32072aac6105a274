import numpy as np


def euler(y, theta, dt, n):
    """y' = tanh(theta y), n explicit Euler steps; n is an int."""
    path = np.zeros((n + 1, y.size))
    path[0] = y
    for k in range(n):
        path[k + 1] = path[k] + dt * np.tanh(theta @ path[k])
    return path, (path, theta, dt, n)


def euler_adjoint(dpath, cache):
    path, theta, dt, n = cache
    lam = dpath[n].copy()
    dtheta = np.zeros_like(theta)
    ddt = 0.0
    for k in range(n - 1, -1, -1):
        s = np.tanh(theta @ path[k])
        ddt += lam @ s
        w = dt * lam * (1 - s**2)
        dtheta += np.outer(w, path[k])
        lam = lam + theta.T @ w + dpath[k]
    return lam, dtheta, ddt


# ---- the case
TARGET = (euler, euler_adjoint)
def inputs(rng):
    return rng.standard_normal(3), rng.standard_normal((3, 3)), 0.3, 4
WRONG = [
    Wrong("lam = lam + theta.T @ w + dpath[k]", "lam = lam + theta.T @ w", "term missing"),
    Wrong("ddt += lam @ s", "ddt += dt * lam @ s", "factor extra"),
    Wrong("w = dt * lam * (1 - s**2)", "w = lam * (1 - s**2)", "factor missing"),
]
