import numpy as np


def loss_and_grads(params, ids):
    """Next-character loss over ids with a tanh RNN; params: E, W, U, V."""
    E, W, U, V = (params[k] for k in "EWUV")
    h = np.zeros(W.shape[0])
    tape, loss = [], 0.0
    for i, j in zip(ids[:-1], ids[1:]):
        h_prev = h
        h = np.tanh(E[i] @ U + h_prev @ W)
        z = h @ V
        p = np.exp(z - z.max())
        p /= p.sum()
        loss -= np.log(p[j])
        tape.append((i, j, h_prev, h, p))
    g = {k: np.zeros_like(v) for k, v in params.items()}
    dh_next = np.zeros_like(h)
    for i, j, h_prev, h, p in reversed(tape):
        dz = p.copy()
        dz[j] -= 1
        g["V"] += np.outer(h, dz)
        dh = V @ dz + dh_next
        da = dh * (1 - h * h)
        g["W"] += np.outer(h_prev, da)
        g["U"] += np.outer(E[i], da)
        g["E"][i] += U @ da
        dh_next = W @ da
    return loss, g


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"E": s((4, 2)), "W": s((3, 3)), "U": s((2, 3)), "V": s((3, 4))}, [0, 1, 1, 3, 2]
WRONG = [
    Wrong("dh = V @ dz + dh_next", "dh = V @ dz", "carry"),
    Wrong('g["E"][i] += U @ da', 'g["E"][i] = U @ da', "accumulate"),
    Wrong("dh_next = W @ da", "dh_next = W.T @ da", "transpose"),
    Wrong('g["U"] += np.outer(E[i], da)', 'g["U"] += np.outer(E[j], da)', "index", (r"E\[|index|belongs|instead|i\b",)),
]
