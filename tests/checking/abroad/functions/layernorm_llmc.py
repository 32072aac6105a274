import numpy as np


def layernorm_forward(inp, weight, bias):
    # inp is (B,T,C), weight and bias are (C,)
    eps = 1e-5
    mean = inp.sum(-1, keepdims=True) / inp.shape[-1]
    xshift = inp - mean
    var = (xshift**2).sum(-1, keepdims=True) / inp.shape[-1]
    rstd = (var + eps) ** -0.5
    norm = xshift * rstd
    out = norm * weight + bias
    return out, (inp, weight, mean, rstd)


def layernorm_backward(dout, cache):
    inp, weight, mean, rstd = cache
    norm = (inp - mean) * rstd  # recompute instead of storing
    dbias = dout.sum((0, 1))
    dweight = (dout * norm).sum((0, 1))
    dnorm = dout * weight
    dinp = dnorm - dnorm.mean(-1, keepdims=True) - norm * (dnorm * norm).mean(-1, keepdims=True)
    dinp *= rstd
    return dinp, dweight, dbias


# ---- the case
TARGET = (layernorm_forward, layernorm_backward)
inputs = normal((2, 3, 4), 4, 4)
WRONG = [
    Wrong("    dinp *= rstd\n", "", "factor missing"),
    Wrong("dnorm = dout * weight", "dnorm = dout", "factor missing"),
    Wrong(" - norm * (dnorm * norm).mean", " - norm * (dout * norm).mean", "name"),
]
