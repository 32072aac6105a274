"""Layer normalisation with a wrong sign"""

import numpy as np


def forward(x, gamma, beta):
    centred = x - x.mean(axis=-1, keepdims=True)
    inv_std = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    x_hat = centred * inv_std
    y = gamma * x_hat + beta
    return y, (x_hat, inv_std, gamma)


def backward(dy, cache):
    x_hat, inv_std, gamma = cache
    dgamma = (dy * x_hat).sum(axis=0)
    dbeta = dy.sum(axis=0)
    dx_hat = dy * gamma
    mean = dx_hat.mean(axis=-1, keepdims=True)
    projection = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat + mean - projection) * inv_std
    return dx, dgamma, dbeta


INPUTS = {
    "x": [[1.0, 3.0, 2.0], [0.0, -2.0, 5.0]],
    "gamma": [1.0, 2.0, -1.0],
    "beta": [0.0, 1.0, 0.0],
}
