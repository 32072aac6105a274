import numpy as np


def lossFun(Wxh, Whh, Why, bh, by, inputs, targets, hprev):
    """One pass over a sequence of characters (ints)."""
    xs, hs, ps = {}, {}, {}
    hs[-1] = np.copy(hprev)
    loss = 0
    V = Why.shape[0]
    for t in range(len(inputs)):
        xs[t] = np.zeros((V, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(Wxh @ xs[t] + Whh @ hs[t - 1] + bh)
        y = Why @ hs[t] + by
        ps[t] = np.exp(y) / np.sum(np.exp(y))
        loss += -np.log(ps[t][targets[t], 0])
    return loss, (xs, hs, ps, targets, Wxh, Whh, Why, bh, by)


def lossFun_backward(dloss, cache):
    xs, hs, ps, targets, Wxh, Whh, Why, bh, by = cache
    dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    dbh, dby = np.zeros_like(bh), np.zeros_like(by)
    dhnext = np.zeros_like(hs[0])
    for t in reversed(range(len(targets))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dy *= dloss
        dWhy += np.dot(dy, hs[t].T)
        dby += dy
        dh = np.dot(Why.T, dy) + dhnext
        dhraw = (1 - hs[t] * hs[t]) * dh
        dbh += dhraw
        dWxh += np.dot(dhraw, xs[t].T)
        dWhh += np.dot(dhraw, hs[t - 1].T)
        dhnext = np.dot(Whh.T, dhraw)
    return dWxh, dWhh, dWhy, dbh, dby


# ---- the case
TARGET = (lossFun, lossFun_backward)
OPTIONS = {"wrt": ("Wxh", "Whh", "Why", "bh", "by")}
def inputs(rng):
    s = rng.standard_normal
    return s((4, 3)), s((4, 4)), s((3, 4)), s((4, 1)), s((3, 1)), [0, 2, 1, 1], [2, 1, 1, 0], s((4, 1))
WRONG = [
    Wrong("dhnext = np.dot(Whh.T, dhraw)", "dhnext = np.dot(Whh, dhraw)", "transpose"),
    Wrong("dhnext = np.dot(Whh.T, dhraw)", "dhnext = np.dot(Whh.T, dh)", "name"),
    Wrong("dWhh += np.dot(dhraw, hs[t - 1].T)", "dWhh += np.dot(dhraw, hs[t].T)", "index", (r"hs|t - 1|step|index|previous|belongs|shift",)),
    Wrong("for t in reversed(range(len(targets))):", "for t in range(len(targets)):", "order"),
    Wrong("        dbh += dhraw\n", "        dbh = dhraw\n", "accumulate"),
]
