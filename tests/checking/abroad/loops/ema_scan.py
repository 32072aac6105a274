import numpy as np


def ema(x, alpha, s0):
    a = 1 / (1 + np.exp(-alpha))
    s = s0
    states = []
    for t in range(len(x)):
        states.append(s)
        s = a * x[t] + (1 - a) * s
    return s, (x, a, states)


def ema_backward(ds, cache):
    x, a, states = cache
    dx = np.zeros_like(x)
    da = np.zeros_like(a)
    for t in range(len(x) - 1, -1, -1):
        dx[t] = a * ds
        da += (x[t] - states[t]) * ds
        ds = (1 - a) * ds
    return dx, da * a * (1 - a), ds


# ---- the case
TARGET = (ema, ema_backward)
inputs = normal((5, 3), 3, 3)
WRONG = [
    Wrong("        ds = (1 - a) * ds\n", "", "carry", (r"carried|factor|next|step|missing|never",)),
    Wrong("da += (x[t] - states[t]) * ds", "da += x[t] * ds", "term missing"),
    Wrong("return dx, da * a * (1 - a), ds", "return dx, da, ds", "factor missing"),
    (Wrong("da += (x[t] - states[t]) * ds", "da = (x[t] - states[t]) * ds", "accumulate"), Wrong("dx[t] = a * ds", "dx[t] = ds", "factor missing")),
]
