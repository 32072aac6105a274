import numpy as np


def deep_residual(x, Ws):
    """x + tanh(x W_l), layer after layer; Ws is (L, D, D)."""
    acts = [x]
    for W in Ws:
        x = x + np.tanh(x @ W)
        acts.append(x)
    return x, (acts, Ws)


def deep_residual_back(g, cache):
    acts, Ws = cache
    dWs = np.zeros_like(Ws)
    for l in range(len(Ws) - 1, -1, -1):
        t = acts[l + 1] - acts[l]
        gz = g * (1 - t**2)
        dWs[l] = acts[l].T @ gz
        g = g + gz @ Ws[l].T
    return g, dWs


# ---- the case
TARGET = (deep_residual, deep_residual_back)
inputs = normal((4, 3), (3, 3, 3))
WRONG = [
    Wrong("g = g + gz @ Ws[l].T", "g = gz @ Ws[l].T", "term missing"),
    Wrong("t = acts[l + 1] - acts[l]", "t = acts[l + 1]", "term missing"),
    Wrong("dWs[l] = acts[l].T @ gz", "dWs[l] = acts[l + 1].T @ gz", "index"),
    Wrong("range(len(Ws) - 1, -1, -1)", "range(len(Ws) - 1, 0, -1)", "index", (r"range|step|loop|zero|missing|index|layer",)),
]
