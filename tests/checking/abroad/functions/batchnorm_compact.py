import numpy as np


def bn_fwd(x, gamma, beta, eps=1e-5):
    mu = x.mean(axis=0)
    var = x.var(axis=0)
    xhat = (x - mu) / np.sqrt(var + eps)
    return gamma * xhat + beta, (xhat, gamma, var, eps)


def bn_bwd(dout, cache):
    xhat, gamma, var, eps = cache
    N = dout.shape[0]
    dbeta = dout.sum(axis=0)
    dgamma = (dout * xhat).sum(axis=0)
    dx = gamma / (N * np.sqrt(var + eps)) * (N * dout - dbeta - xhat * dgamma)
    return dx, dgamma, dbeta


# ---- the case
TARGET = (bn_fwd, bn_bwd)
inputs = normal((7, 3), 3, 3)
WRONG = [
    Wrong("(N * dout - dbeta - xhat * dgamma)", "(N * dout - dbeta - dgamma)", "factor missing"),
    Wrong("np.sqrt(var + eps)) * (N", "(var + eps)) * (N", "exponent"),
    Wrong("(N * dout - dbeta - xhat * dgamma)", "(N * dout - xhat * dgamma)", "term missing"),
]
