import numpy as np


def group_norm(x, gamma, beta, G=2, eps=1e-5):
    N, C, H, W = x.shape
    xg = x.reshape(N, G, -1)
    mu = xg.mean(axis=2, keepdims=True)
    std = np.sqrt(xg.var(axis=2, keepdims=True) + eps)
    xn = ((xg - mu) / std).reshape(x.shape)
    return gamma * xn + beta, (xn, std, gamma, G)


def group_norm_back(dout, cache):
    xn, std, gamma, G = cache
    N, C, H, W = xn.shape
    dbeta = dout.sum(axis=(0, 2, 3), keepdims=True)
    dgamma = (dout * xn).sum(axis=(0, 2, 3), keepdims=True)
    d = (dout * gamma).reshape(N, G, -1)
    h = xn.reshape(N, G, -1)
    dx = (d - d.mean(2, keepdims=True) - h * (d * h).mean(2, keepdims=True)) / std
    return dx.reshape(xn.shape), dgamma, dbeta


# ---- the case
TARGET = (group_norm, group_norm_back)
inputs = normal((2, 4, 2, 2), (1, 4, 1, 1), (1, 4, 1, 1))
WRONG = [
    Wrong("(dout * gamma).reshape(N, G, -1)", "dout.reshape(N, G, -1)", "factor missing"),
    Wrong("h * (d * h).mean(2, keepdims=True)", "h * (d * h).mean(0, keepdims=True)", "axis"),
    Wrong("dgamma = (dout * xn).sum(axis=(0, 2, 3), keepdims=True)", "dgamma = (dout * xn).sum(axis=(0, 2, 3), keepdims=True) / N", "factor extra"),
]
