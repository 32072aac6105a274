import numpy as np


def _angles(T, d):
    inv = 1.0 / 10000 ** (np.arange(0, d, 2) / d)
    return np.outer(np.arange(T), inv)


def _rotate(x, ang, sign):
    c, s = np.cos(ang), sign * np.sin(ang)
    x1, x2 = x[..., ::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., ::2] = x1 * c - x2 * s
    out[..., 1::2] = x1 * s + x2 * c
    return out


def rope(x, scale):
    ang = _angles(*x.shape[-2:])
    y = _rotate(x, ang, 1)
    return scale * y, (ang, y, scale)


def rope_backward(dy, cache):
    ang, y, scale = cache
    dscale = (dy * y).sum(axis=(0, 1))
    return _rotate(scale * dy, ang, -1), dscale


# ---- the case
TARGET = (rope, rope_backward)
inputs = normal((2, 3, 4), 4)
WRONG = [
    Wrong("_rotate(scale * dy, ang, -1)", "_rotate(scale * dy, ang, 1)", "sign"),
    Wrong("_rotate(scale * dy, ang, -1)", "_rotate(dy, ang, -1)", "factor missing"),
    Wrong("dscale = (dy * y).sum(axis=(0, 1))", "dscale = (dy * y).sum(axis=1)[0]", "axis", (r"axis|sum|row",)),
]
