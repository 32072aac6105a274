import numpy as np


def objective(beta, X, y, l1, l2):
    r = y - X @ beta
    small = np.abs(r) < 1
    loss = np.where(small, 0.5 * r**2, np.abs(r) - 0.5).sum() + l1 * np.sqrt(beta**2 + 1e-3).sum() + 0.5 * l2 * beta @ beta
    psi = np.where(small, r, np.sign(r))
    grad = -X.T @ psi
    grad += l1 * beta / np.sqrt(beta**2 + 1e-3)
    grad += l2 * beta
    return loss, grad


# ---- the case
TARGET = objective
CALL = "step"
OPTIONS = {"wrt": ("beta",)}
def inputs(rng):
    return rng.standard_normal(4), rng.standard_normal((6, 4)), rng.standard_normal(6), 0.3, 0.2
WRONG = [
    Wrong("grad = -X.T @ psi", "grad = -X.T @ r", "name"),
    Wrong("    grad += l2 * beta\n", "", "term missing"),
    Wrong("grad = -X.T @ psi", "grad = X.T @ psi", "sign"),
]
