import numpy as np


def bigram_loss(W, ix, iy, reg):
    logits = W[ix]
    counts = np.exp(logits)
    probs = counts / counts.sum(1, keepdims=True)
    n = len(ix)
    loss = -np.log(probs[np.arange(n), iy]).mean() + reg * (W**2).mean()
    # manual backward
    dlogits = probs.copy()
    dlogits[np.arange(n), iy] -= 1
    dlogits /= n
    dW = np.zeros_like(W)
    np.add.at(dW, ix, dlogits)
    dW += 2 * reg * W / W.size
    return loss, dW


# ---- the case
TARGET = bigram_loss
CALL = "step"
OPTIONS = {"wrt": ("W",)}
def inputs(rng):
    return rng.standard_normal((5, 5)), np.array([0, 1, 1, 3]), np.array([1, 1, 3, 4]), 0.1
WRONG = [
    Wrong("np.add.at(dW, ix, dlogits)", "dW[ix] += dlogits", "duplicates"),
    Wrong("dW += 2 * reg * W / W.size", "dW += 2 * reg * W", "factor missing"),
    Wrong("    dW += 2 * reg * W / W.size\n", "", "term missing"),
]
