import numpy as np


def mish(x):
    sp = np.log1p(np.exp(x))
    t = np.tanh(sp)
    return x * t, (x, sp, t)


def mish_grad(dy, cache):
    x, sp, t = cache
    sig = 1 / (1 + np.exp(-x))
    dt = dy * x
    dsp = dt * (1 - t ** 2)
    return dy * t + dsp * sig


# ---- the case
TARGET = (mish, mish_grad)
inputs = normal((4, 5))
WRONG = [
    Wrong("return dy * t + dsp * sig", "return dy * t + dsp", "factor missing"),
    Wrong("dsp = dt * (1 - t ** 2)", "dsp = dt * (1 - sp ** 2)", "name"),
    Wrong("dt = dy * x", "dt = dy", "factor missing"),
    Wrong("sig = 1 / (1 + np.exp(-x))", "sig = 1 / (1 + np.exp(x))", "sign"),
]
