import math


def softplus_scalar(x, k):
    """Plain floats, no arrays."""
    z = k * x
    y = (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) / k
    return y, (x, k, y)


def softplus_scalar_grad(dy, cache):
    x, k, y = cache
    s = 1.0 / (1.0 + math.exp(-k * x))
    dx = dy * s
    dk = dy * (s * x - y) / k
    return dx, dk


# ---- the case
TARGET = (softplus_scalar, softplus_scalar_grad)
def inputs(rng):
    return 0.8, 1.7
WRONG = [
    Wrong("dx = dy * s\n", "dx = dy * s * k\n", "factor extra"),
    Wrong("dk = dy * (s * x - y) / k", "dk = dy * (s * x + y) / k", "sign"),
]
