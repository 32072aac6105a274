import numpy as np


def rnn_ragged(x, lengths, W, U):
    """x: (B, T, D); after its length a row keeps its state."""
    B, T, _ = x.shape
    h = np.zeros((B, U.shape[0]))
    store = []
    for t in range(T):
        live = (t < lengths)[:, None]
        cand = np.tanh(x[:, t] @ W + h @ U)
        store.append((h, cand, live))
        h = np.where(live, cand, h)
    return h, (x, W, U, store)


def rnn_ragged_bwd(dh, cache):
    x, W, U, store = cache
    dx = np.zeros_like(x)
    dW, dU = np.zeros_like(W), np.zeros_like(U)
    for t in reversed(range(len(store))):
        h, cand, live = store[t]
        dz = np.where(live, dh, 0) * (1 - cand**2)
        dx[:, t] = dz @ W.T
        dW += x[:, t].T @ dz
        dU += h.T @ dz
        dh = np.where(live, dz @ U.T, dh)
    return dx, dW, dU


# ---- the case
TARGET = (rnn_ragged, rnn_ragged_bwd)
OPTIONS = {"wrt": ("x", "W", "U")}
def inputs(rng):
    return rng.standard_normal((3, 4, 2)), np.array([4, 2, 3]), rng.standard_normal((2, 3)), rng.standard_normal((3, 3))
WRONG = [
    Wrong("dh = np.where(live, dz @ U.T, dh)", "dh = dz @ U.T", "mask", (r"mask|live|where|carr|length|missing",)),
    Wrong("dz = np.where(live, dh, 0) * (1 - cand**2)", "dz = dh * (1 - cand**2)", "mask", (r"mask|live|where|length|missing",)),
]
