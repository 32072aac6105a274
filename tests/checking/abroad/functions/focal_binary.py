import numpy as np


def focal_loss(logit, target, gamma=2.0):
    p = 1 / (1 + np.exp(-logit))
    pt = np.where(target == 1, p, 1 - p)
    loss = -((1 - pt) ** gamma) * np.log(pt)
    return loss.mean(), (pt, target, gamma)


def focal_loss_grad(g, cache):
    pt, target, gamma = cache
    dpt = gamma * (1 - pt) ** (gamma - 1) * np.log(pt) - (1 - pt) ** gamma / pt
    dlogit = dpt * pt * (1 - pt) * np.where(target == 1, 1, -1)
    return g * dlogit / pt.size


# ---- the case
TARGET = (focal_loss, focal_loss_grad)
def inputs(rng):
    return rng.standard_normal(10), rng.integers(0, 2, 10)
WRONG = [
    Wrong("gamma * (1 - pt) ** (gamma - 1) *", "gamma * (1 - pt) ** gamma *", "exponent"),
    Wrong("* np.where(target == 1, 1, -1)", "", "factor missing", (r"sign|factor|missing|where|target",)),
    Wrong("g * dlogit / pt.size", "g * dlogit", "factor missing"),
]
