import numpy as np


def _pick(parts, i):
    return parts[i]


def split_gate(x, W):
    """GLU: half of the columns gate the other half."""
    z = x @ W
    n = W.shape[1] // 2
    a, b = z[:, :n], z[:, n:]
    s = 1 / (1 + np.exp(-b))
    return a * s, {"x": x, "W": W, "parts": (a, b, s)}


def split_gate_back(dy, cache):
    a = _pick(cache["parts"], 0)
    s = _pick(cache["parts"], 2)
    dz = np.empty((a.shape[0], 2 * a.shape[1]))
    dz[:, :a.shape[1]] = dy * s
    dz[:, a.shape[1]:] = dy * a * s * (1 - s)
    return {"x": dz @ cache["W"].T, "W": cache["x"].T @ dz}


# ---- the case
TARGET = (split_gate, split_gate_back)
inputs = normal((4, 3), (3, 6))
WRONG = [
    Wrong("= dy * a * s * (1 - s)", "= dy * s * (1 - s)", "factor missing"),
    Wrong('s = _pick(cache["parts"], 2)', 's = _pick(cache["parts"], 1)', "index", (r"s\b|index|belongs|should",)),
]
