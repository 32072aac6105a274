import numpy as np


def sqdist(A, B):
    return (A**2).sum(1)[:, None] + (B**2).sum(1)[None] - 2 * A @ B.T


def sqdist_vjp(G, A, B):
    dA = 2 * (G.sum(1)[:, None] * A - G @ B)
    dB = 2 * (G.sum(0)[:, None] * B - G.T @ A)
    return dA, dB


def rbf(A, B, ell):
    D = sqdist(A, B)
    K = np.exp(-D / (2 * ell**2))
    return K, (A, B, ell, D, K)


def rbf_vjp(dK, cache):
    A, B, ell, D, K = cache
    dD = -dK * K / (2 * ell**2)
    dA, dB = sqdist_vjp(dD, A, B)
    dell = np.sum(dK * K * D) / ell**3
    return dA, dB, dell


# ---- the case
TARGET = (rbf, rbf_vjp)
def inputs(rng):
    return rng.standard_normal((4, 2)), rng.standard_normal((3, 2)), 0.9
WRONG = [
    Wrong("dB = 2 * (G.sum(0)[:, None] * B - G.T @ A)", "dB = (G.sum(0)[:, None] * B - G.T @ A)", "factor missing"),
    Wrong("/ ell**3", "/ ell**2", "exponent"),
    Wrong("2 * (G.sum(1)[:, None] * A - G @ B)", "2 * (G.sum(1)[:, None] * A + G @ B)", "sign"),
]
