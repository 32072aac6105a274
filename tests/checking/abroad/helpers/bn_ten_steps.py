import numpy as np


def batchnorm_forward(x, gamma, beta, eps):
    N, D = x.shape
    mu = 1.0 / N * np.sum(x, axis=0)
    xmu = x - mu
    sq = xmu ** 2
    var = 1.0 / N * np.sum(sq, axis=0)
    sqrtvar = np.sqrt(var + eps)
    ivar = 1.0 / sqrtvar
    xhat = xmu * ivar
    gammax = gamma * xhat
    out = gammax + beta
    return out, (xhat, gamma, xmu, ivar, sqrtvar, var, eps)


def batchnorm_backward(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    N, D = dout.shape
    # step 9
    dbeta = np.sum(dout, axis=0)
    dgammax = dout
    # step 8
    dgamma = np.sum(dgammax * xhat, axis=0)
    dxhat = dgammax * gamma
    # step 7
    divar = np.sum(dxhat * xmu, axis=0)
    dxmu1 = dxhat * ivar
    # step 6
    dsqrtvar = -1.0 / (sqrtvar ** 2) * divar
    # step 5
    dvar = 0.5 * 1.0 / np.sqrt(var + eps) * dsqrtvar
    # step 4
    dsq = 1.0 / N * np.ones((N, D)) * dvar
    # step 3
    dxmu2 = 2 * xmu * dsq
    # step 2
    dx1 = dxmu1 + dxmu2
    dmu = -1 * np.sum(dxmu1 + dxmu2, axis=0)
    # step 1
    dx2 = 1.0 / N * np.ones((N, D)) * dmu
    # step 0
    dx = dx1 + dx2
    return dx, dgamma, dbeta


# ---- the case
TARGET = (batchnorm_forward, batchnorm_backward)
def inputs(rng):
    return rng.standard_normal((6, 3)), rng.standard_normal(3), rng.standard_normal(3), 1e-5
OPTIONS = {"wrt": ("x", "gamma", "beta")}
WRONG = [
    Wrong("dxmu2 = 2 * xmu * dsq", "dxmu2 = xmu * dsq", "factor missing"),
    Wrong("dsqrtvar = -1.0 /", "dsqrtvar = 1.0 /", "sign"),
    Wrong("dvar = 0.5 * 1.0 / np.sqrt(var + eps)", "dvar = 0.5 * 1.0 / (var + eps)", "exponent"),
    Wrong("dx2 = 1.0 / N * np.ones", "dx2 = np.ones", "factor missing"),
    Wrong("dx = dx1 + dx2", "dx = dx1", "term missing"),
]
