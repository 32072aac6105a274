import numpy as np


def ema(x, alpha):
    """Exponential moving average along axis 0, written into a buffer."""
    out = x.copy()
    for t in range(1, out.shape[0]):
        out[t] *= alpha
        out[t] += (1 - alpha) * out[t - 1]
    return out, (x, alpha, out)


def ema_backward(dout, cache):
    x, alpha, out = cache
    buf = dout.copy()
    dalpha = 0.0
    for t in range(len(x) - 1, 0, -1):
        dalpha += np.sum(buf[t] * (x[t] - out[t - 1]))
        buf[t - 1] += (1 - alpha) * buf[t]
        buf[t] *= alpha
    return buf, dalpha


# ---- the case
TARGET = (ema, ema_backward)
def inputs(rng):
    return rng.standard_normal((5, 3)), 0.4
WRONG = [
    Wrong("        buf[t - 1] += (1 - alpha) * buf[t]\n        buf[t] *= alpha\n", "        buf[t] *= alpha\n        buf[t - 1] += (1 - alpha) * buf[t]\n", "order", (r"order|before|after|overwrit|factor|changed",)),
    Wrong("(x[t] - out[t - 1])", "x[t]", "term missing"),
]
