import numpy as np


def ln_forward(x, gamma, beta, eps=1e-5):
    mean = x.mean(1, keepdims=True)
    diff = x - mean
    sq = diff * diff
    var = sq.mean(1, keepdims=True)
    std = np.sqrt(var + eps)
    inv = 1.0 / std
    norm = diff * inv
    return norm * gamma + beta, (diff, std, inv, norm, gamma)


def ln_backward(dout, cache):
    diff, std, inv, norm, gamma = cache
    D = diff.shape[1]
    dbeta = dout.sum(0)
    dgamma = (dout * norm).sum(0)
    dnorm = dout * gamma
    ddiff = dnorm * inv
    dinv = (dnorm * diff).sum(1, keepdims=True)
    dstd = -dinv * inv**2
    dvar = dstd * 0.5 / std
    dsq = np.repeat(dvar, D, axis=1) / D
    ddiff += 2 * diff * dsq
    dmean = -ddiff.sum(1, keepdims=True)
    dx = ddiff + dmean / D
    return dx, dgamma, dbeta


# ---- the case
TARGET = (ln_forward, ln_backward)
inputs = normal((4, 5), 5, 5)
WRONG = [
    Wrong("ddiff += 2 * diff * dsq", "ddiff = 2 * diff * dsq", "accumulate"),
    Wrong("dstd = -dinv * inv**2", "dstd = -dinv * inv", "exponent"),
    Wrong("dx = ddiff + dmean / D", "dx = ddiff + dmean", "factor missing"),
    Wrong("np.repeat(dvar, D, axis=1) / D", "np.repeat(dvar, D, axis=1)", "factor missing"),
]
