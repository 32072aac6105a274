import numpy as np


def iou(a, b):
    """Boxes (n, 4) as x1, y1, x2, y2."""
    lt = np.maximum(a[:, :2], b[:, :2])
    rb = np.minimum(a[:, 2:], b[:, 2:])
    wh = np.maximum(rb - lt, 0)
    inter = wh[:, 0] * wh[:, 1]
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    union = area(a) + area(b) - inter
    return inter / union, (a, b, wh, inter, union)


def iou_grad(g, cache):
    a, b, wh, inter, union = cache
    dinter = g / union + g * inter / union**2
    darea = -g * inter / union**2
    dwh = np.stack([dinter * wh[:, 1], dinter * wh[:, 0]], 1) * (wh > 0)
    da = np.zeros_like(a)
    da[:, :2] -= dwh * (a[:, :2] > b[:, :2])
    da[:, 2:] += dwh * (a[:, 2:] < b[:, 2:])
    w, h = a[:, 2] - a[:, 0], a[:, 3] - a[:, 1]
    da += (darea[:, None]) * np.stack([-h, -w, h, w], 1)
    return da


# ---- the case
TARGET = (iou, iou_grad)
OPTIONS = {"wrt": ("a",)}
def inputs(rng):
    lo = rng.random((5, 2))
    a = np.hstack([lo, lo + 1 + rng.random((5, 2))])
    return a, a + 0.3 * rng.standard_normal((5, 4))
WRONG = [
    Wrong("g / union + g * inter / union**2", "g / union", "term missing"),
    Wrong("np.stack([-h, -w, h, w], 1)", "np.stack([-w, -h, w, h], 1)", "swapped"),
    Wrong("[dinter * wh[:, 1], dinter * wh[:, 0]]", "[dinter * wh[:, 0], dinter * wh[:, 1]]", "swapped"),
]
