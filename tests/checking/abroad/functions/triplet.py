import numpy as np


def triplet(anchor, pos, neg, margin=1.0):
    dp = ((anchor - pos) ** 2).sum(1)
    dn = ((anchor - neg) ** 2).sum(1)
    l = np.maximum(dp - dn + margin, 0)
    return l.mean(), (anchor, pos, neg, l)


def triplet_backward(g, cache):
    anchor, pos, neg, l = cache
    act = (g * (l > 0) / len(l))[:, None]
    dpos = act * 2 * (pos - anchor)
    dneg = act * 2 * (anchor - neg)
    danchor = act * 2 * (neg - pos)
    return danchor, dpos, dneg


# ---- the case
TARGET = (triplet, triplet_backward)
inputs = normal((6, 3), (6, 3), (6, 3))
WRONG = [
    Wrong("danchor = act * 2 * (neg - pos)", "danchor = act * 2 * (pos - neg)", "sign"),
    Wrong("dneg = act * 2 * (anchor - neg)", "dneg = act * (anchor - neg)", "factor missing"),
    Wrong("(g * (l > 0) / len(l))", "(g / len(l)) * np.ones(len(l))", "mask"),
]
