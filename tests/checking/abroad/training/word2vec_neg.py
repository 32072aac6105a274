import numpy as np


def sgns(center, context, c, pos, neg):
    """Skip-gram with negative sampling for one word c; context word pos, sampled neg (ints)."""
    v = center[c]
    up = context[pos]
    un = context[neg]
    sp = 1 / (1 + np.exp(-up @ v))
    sn = 1 / (1 + np.exp(un @ v))
    loss = -np.log(sp) - np.log(sn).sum()
    gcenter = np.zeros_like(center)
    gcontext = np.zeros_like(context)
    gcenter[c] = (sp - 1) * up + (1 - sn) @ un
    gcontext[pos] += (sp - 1) * v
    for k, i in enumerate(neg):
        gcontext[i] += (1 - sn[k]) * v
    return loss, gcenter, gcontext


# ---- the case
TARGET = sgns
CALL = "step"
OPTIONS = {"wrt": ("center", "context")}
def inputs(rng):
    return rng.standard_normal((4, 3)), rng.standard_normal((5, 3)), 2, 1, np.array([0, 3, 3])
WRONG = [
    Wrong("gcontext[i] += (1 - sn[k]) * v", "gcontext[i] = (1 - sn[k]) * v", "duplicates"),
    Wrong("(sp - 1) * up + (1 - sn) @ un", "(sp - 1) * up - (1 - sn) @ un", "sign"),
    Wrong("gcontext[pos] += (sp - 1) * v", "gcontext[pos] += (1 - sp) * v", "sign"),
]
