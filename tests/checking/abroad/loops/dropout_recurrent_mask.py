import numpy as np


def rnn_drop(x, W, U, masks):
    """The same mask of 0 and 1/keep at every step (variational dropout)."""
    h = np.zeros((x.shape[1], U.shape[0]))
    tape = []
    for t in range(len(x)):
        hd = h * masks
        hn = np.tanh(x[t] @ W + hd @ U)
        tape.append((hd, hn))
        h = hn
    return h, (x, W, U, masks, tape)


def rnn_drop_grad(dh, cache):
    x, W, U, masks, tape = cache
    dx, dW, dU = np.zeros(x.shape), 0.0, 0.0
    t = len(tape)
    while tape[:t]:
        t -= 1
        hd, hn = tape[t]
        dz = dh * (1 - hn**2)
        dW = dW + x[t].T @ dz
        dU = dU + hd.T @ dz
        dx[t] = dz @ W.T
        dh = (dz @ U.T) * masks
    return dx, dW, dU


# ---- the case
TARGET = (rnn_drop, rnn_drop_grad)
OPTIONS = {"wrt": ("x", "W", "U")}
def inputs(rng):
    return rng.standard_normal((3, 2, 2)), rng.standard_normal((2, 4)), rng.standard_normal((4, 4)), (rng.random((2, 4)) > 0.4) / 0.6
WRONG = [
    Wrong("dh = (dz @ U.T) * masks", "dh = dz @ U.T", "mask", (r"mask|factor|missing",)),
    Wrong("dU = dU + hd.T @ dz", "dU = dU + hn.T @ dz", "name"),
]
