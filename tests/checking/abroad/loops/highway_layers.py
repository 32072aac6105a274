import numpy as np

S = lambda a: 1.0 / (1.0 + np.exp(-a))


def highway(x, Wh, Wt, bt):
    """Shared weights, three layers: y = t * tanh(x Wh) + (1 - t) * x"""
    saved = {}
    for l in range(3):
        h, t = np.tanh(x @ Wh), S(x @ Wt + bt)
        saved[l] = (x, h, t)
        x = t * h + (1 - t) * x
    return x, (saved, Wh, Wt, bt)


def highway_back(dy, cache):
    saved, Wh, Wt, bt = cache
    gWh, gWt, gbt = np.zeros_like(Wh), np.zeros_like(Wt), np.zeros_like(bt)
    for l in (2, 1, 0):
        x, h, t = saved[l]
        da = dy * t * (1 - h**2)
        db = dy * (h - x) * t * (1 - t)
        gWh += x.T @ da
        gWt += x.T @ db
        gbt += db.sum(0)
        dy = dy * (1 - t) + da @ Wh.T + db @ Wt.T
    return dy, gWh, gWt, gbt


# ---- the case
TARGET = (highway, highway_back)
inputs = normal((3, 3), (3, 3), (3, 3), 3)
WRONG = [
    Wrong("dy * (h - x) * t * (1 - t)", "dy * h * t * (1 - t)", "term missing"),
    Wrong("dy = dy * (1 - t) + da", "dy = dy * t + da", "name", (r"1 [-−] t|belongs|should|instead|factor",)),
    Wrong("gbt += db.sum(0)", "gbt += da.sum(0)", "name"),
]
