import numpy as np


def silu_half(x, w):
    """Activations are kept in half precision to save memory."""
    h = (x * w).astype(np.float16)
    s = 1 / (1 + np.exp(-h))
    return (h * s).astype(np.float16), (x, w, h)


def silu_half_bwd(dy, cache):
    x, w, h = cache
    s = 1 / (1 + np.exp(-h))
    dh = (dy * (s + h * s * (1 - s))).astype(np.float16)
    return dh * w, (dh * x).sum(0)


# ---- the case
TARGET = (silu_half, silu_half_bwd)
NARROWEST = "float16"
inputs = normal((4, 3), 3)
WRONG = [
    Wrong("(s + h * s * (1 - s))", "(s + s * (1 - s))", "factor missing"),
    Wrong("return dh * w, (dh * x).sum(0)", "return dh * w, (dh * x).mean(0)", "sum for mean"),
]
