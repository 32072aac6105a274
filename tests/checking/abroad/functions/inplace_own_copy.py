import numpy as np


def selu(x, alpha=1.6733, scale=1.0507):
    y = np.array(x)
    neg = y < 0
    y[neg] = alpha * (np.exp(y[neg]) - 1)
    y *= scale
    return y, (neg, y, alpha, scale)


def selu_grad(dy, cache):
    neg, y, alpha, scale = cache
    dx = dy * scale
    dx[neg] = dy[neg] * (y[neg] + alpha * scale)
    return dx


# ---- the case
TARGET = (selu, selu_grad)
inputs = normal((4, 4))
WRONG = [
    Wrong("(y[neg] + alpha * scale)", "(y[neg] + alpha)", "factor missing"),
    Wrong("dx[neg] = dy[neg] * (y[neg]", "dx[neg] = dx[neg] * (y[neg]", "factor extra", (r"factor|scale|belongs|twice|instead",)),
]
