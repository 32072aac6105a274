import numpy as np


def masked_softmax(scores, mask):
    """mask: bool, True = may be seen; fully masked rows give zeros"""
    s = np.where(mask, scores, -np.inf)
    m = s.max(-1, keepdims=True)
    m = np.where(np.isfinite(m), m, 0.0)
    e = np.where(mask, np.exp(np.where(mask, scores - m, 0.0)), 0.0)
    z = e.sum(-1, keepdims=True)
    w = e / np.where(z == 0, 1.0, z)
    return w, w


def masked_softmax_bwd(dw, w):
    return w * (dw - (dw * w).sum(-1, keepdims=True))


# ---- the case
TARGET = (masked_softmax, masked_softmax_bwd)
def inputs(rng):
    mask = rng.random((4, 5)) > 0.3
    mask[2] = False
    mask[0] = True
    return rng.standard_normal((4, 5)), mask
WRONG = [
    Wrong("(dw - (dw * w).sum(-1, keepdims=True))", "(dw - (dw * w).sum(0, keepdims=True))", "axis"),
    Wrong("(dw - (dw * w).sum(-1, keepdims=True))", "(dw - dw.sum(-1, keepdims=True))", "factor missing"),
]
