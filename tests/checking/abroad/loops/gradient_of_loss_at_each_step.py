import numpy as np


def sequence_loss(W, U, V, xs, ts):
    h = np.zeros(W.shape[0])
    hs, ys = [h], []
    loss = 0.0
    for x, t in zip(xs, ts):
        h = np.tanh(W @ h + U @ x)
        y = V @ h
        hs.append(h)
        ys.append(y)
        loss += 0.5 * np.sum((y - t) ** 2)
    return loss, (W, V, xs, ts, hs, ys)


def sequence_loss_back(dloss, cache):
    W, V, xs, ts, hs, ys = cache
    dW, dU, dV = np.zeros_like(W), np.zeros((W.shape[0], xs.shape[1])), np.zeros_like(V)
    dh_next = np.zeros(W.shape[0])
    for n in range(len(xs), 0, -1):
        dy = dloss * (ys[n - 1] - ts[n - 1])
        dV += np.outer(dy, hs[n])
        dh = V.T @ dy + dh_next
        dz = dh * (1 - hs[n] ** 2)
        dW += np.outer(dz, hs[n - 1])
        dU += np.outer(dz, xs[n - 1])
        dh_next = W.T @ dz
    return dW, dU, dV


# ---- the case
TARGET = (sequence_loss, sequence_loss_back)
OPTIONS = {"wrt": ("W", "U", "V")}
inputs = normal((3, 3), (3, 2), (2, 3), (4, 2), (4, 2))
WRONG = [
    Wrong("dV += np.outer(dy, hs[n])", "dV += np.outer(dy, hs[n - 1])", "index"),
    Wrong("dh = V.T @ dy + dh_next", "dh = V.T @ dy", "carry"),
    Wrong("        dh_next = W.T @ dz\n", "        dh_next = W.T @ dh\n", "name"),
    Wrong("    for n in range(len(xs), 0, -1):", "    for n in range(len(xs), 1, -1):", "index", (r"range|step|loop|first|missing|index",)),
]
