import numpy as np


def smooth_ce(logits, target, eps=0.1, ignore=-1):
    n, C = logits.shape
    valid = target != ignore
    t = np.full((n, C), eps / C)
    t[np.arange(n)[valid], target[valid]] += 1 - eps
    t[~valid] = 0
    z = logits - logits.max(1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(1, keepdims=True))
    count = max(valid.sum(), 1)
    return -(t * logp).sum() / count, (np.exp(logp), t, count)


def smooth_ce_backward(g, saved):
    p, t, count = saved
    return g * (p * t.sum(1, keepdims=True) - t) / count


# ---- the case
TARGET = (smooth_ce, smooth_ce_backward)
def inputs(rng):
    return rng.standard_normal((6, 4)), np.array([0, 3, -1, 1, 2, -1])
WRONG = [
    Wrong("p * t.sum(1, keepdims=True) - t", "p - t", "mask", (r"factor|mask|rows|missing|sum\(t|valid",)),
    Wrong("- t) / count", "- t) / len(t)", "factor wrong"),
]
