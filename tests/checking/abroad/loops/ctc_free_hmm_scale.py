import numpy as np


def forward_algorithm(A, B, pi, obs):
    """log-likelihood with scaling; obs are ints"""
    a = pi * B[:, obs[0]]
    al, cs = [], []
    for k, o in enumerate(obs):
        if k:
            a = (al[-1] @ A) * B[:, o]
        c = a.sum()
        a = a / c
        al.append(a)
        cs.append(c)
    return np.log(cs).sum(), (A, B, pi, obs, al, cs)


def forward_algorithm_grad(g, cache):
    A, B, pi, obs, al, cs = cache
    dA, dB, dpi = np.zeros_like(A), np.zeros_like(B), np.zeros_like(pi)
    beta = np.ones(len(pi))
    for k in range(len(obs) - 1, 0, -1):
        u = B[:, obs[k]] * beta / cs[k]
        dA += g * np.outer(al[k - 1], u)
        dB[:, obs[k]] += g * (al[k - 1] @ A) * beta / cs[k]
        beta = A @ u
    dB[:, obs[0]] += g * pi * beta / cs[0]
    dpi += g * B[:, obs[0]] * beta / cs[0]
    return dA, dB, dpi


# ---- the case
TARGET = (forward_algorithm, forward_algorithm_grad)
OPTIONS = {"wrt": ("A", "B", "pi")}
def inputs(rng):
    return rng.random((3, 3)) + 0.1, rng.random((3, 4)) + 0.1, rng.random(3) + 0.1, [0, 2, 2, 1]
WRONG = [
    Wrong("beta = A @ u", "beta = A.T @ u", "transpose"),
    Wrong("dB[:, obs[k]] += g *", "dB[:, obs[k]] = g *", "accumulate"),
    Wrong("        dA += g * np.outer(al[k - 1], u)", "        dA += g * np.outer(al[k], u)", "index"),
]
