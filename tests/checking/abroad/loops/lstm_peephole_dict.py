import numpy as np


def sg(v):
    return 1 / (1 + np.exp(-v))


def forward(X, P):
    """P: dict with W (D+H, 3H), p (H,) peephole of the output gate; input and forget are tied."""
    W, p = P["W"], P["p"]
    H = len(p)
    h, c = np.zeros(H), np.zeros(H)
    cache = {}
    for t, x in enumerate(X):
        v = np.r_[x, h]
        a = v @ W
        f, g = sg(a[:H]), np.tanh(a[H:2 * H])
        c0 = c
        c = f * c + (1 - f) * g
        o = sg(a[2 * H:] + p * c)
        h = o * np.tanh(c)
        cache[t] = (v, f, g, o, c0, c)
    return h, (cache, P)


def backward(dh, saved):
    cache, P = saved
    W, p = P["W"], P["p"]
    H, D = len(p), W.shape[0] - len(p)
    dW, dp, dc = np.zeros_like(W), np.zeros_like(p), np.zeros(H)
    dX = np.zeros((len(cache), D))
    for t in reversed(range(len(cache))):
        v, f, g, o, c0, c = cache[t]
        tc = np.tanh(c)
        dao = dh * tc * o * (1 - o)
        dp += dao * c
        dc = dc + dh * o * (1 - tc**2) + dao * p
        daf = dc * (c0 - g) * f * (1 - f)
        dag = dc * (1 - f) * (1 - g**2)
        da = np.r_[daf, dag, dao]
        dW += np.outer(v, da)
        dv = W @ da
        dX[t], dh = dv[:D], dv[D:]
        dc = dc * f
    return dX, {"W": dW, "p": dp}


# ---- the case
TARGET = (forward, backward)
def inputs(rng):
    return rng.standard_normal((3, 2)), {"W": rng.standard_normal((5, 9)), "p": rng.standard_normal(3)}
WRONG = [
    Wrong(" + dao * p\n", "\n", "term missing"),
    Wrong("dc * (c0 - g) * f", "dc * c0 * f", "term missing"),
]
