import numpy as np


def huber_loss(pred, target, delta=1.0):
    diff = pred - target
    absd = np.abs(diff)
    quad = 0.5 * diff**2
    lin = delta * (absd - 0.5 * delta)
    return np.where(absd <= delta, quad, lin).sum(), (diff, absd, delta)


def huber_grad(gout, cache):
    diff, absd, delta = cache
    g = np.where(absd <= delta, diff, delta * np.sign(diff))
    return gout * g, -gout * g


# ---- the case
TARGET = (huber_loss, huber_grad)
def inputs(rng):
    return 2 * rng.standard_normal(9), rng.standard_normal(9)
WRONG = [
    Wrong("delta * np.sign(diff)", "delta * diff", "name", (r"sign|instead of|should be|factor",)),
    Wrong("return gout * g, -gout * g", "return gout * g, gout * g", "sign"),
]
