"""Attention with a scale and a term forgotten"""

import math

import numpy as np


def forward(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v, (q, k, v, weights)


def backward(dy, cache):
    q, k, v, weights = cache
    dv = weights.T @ dy
    dweights = dy @ v.T
    dscores = weights * dweights
    dq = dscores @ k
    dk = dscores.T @ q / math.sqrt(q.shape[-1])
    return dq, dk, dv


INPUTS = {
    "q": [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]],
    "k": [[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 1.0], [2.0, 0.0, 0.0]],
    "v": [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 1.0]],
}
