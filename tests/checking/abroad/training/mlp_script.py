import numpy as np


def loss_and_grads(params, X, y):
    W1, b1, W2, b2 = params["W1"], params["b1"], params["W2"], params["b2"]
    N = X.shape[0]
    # forward
    h = np.maximum(0, X.dot(W1) + b1)
    scores = h.dot(W2) + b2
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    reg = 0.01
    loss = -np.log(p[range(N), y]).sum() / N + reg * (np.sum(W1 * W1) + np.sum(W2 * W2))
    # backward
    grads = {}
    dscores = p
    dscores[range(N), y] -= 1
    dscores /= N
    grads["W2"] = h.T.dot(dscores) + 2 * reg * W2
    grads["b2"] = dscores.sum(0)
    dh = dscores.dot(W2.T)
    dh[h <= 0] = 0
    grads["W1"] = X.T.dot(dh) + 2 * reg * W1
    grads["b1"] = dh.sum(0)
    return loss, grads


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"W1": s((4, 6)), "b1": s(6), "W2": s((6, 3)), "b2": s(3)}, s((5, 4)), rng.integers(0, 3, 5)
WRONG = [
    Wrong("h.T.dot(dscores) + 2 * reg * W2", "h.T.dot(dscores) + reg * W2", "factor wrong"),
    Wrong("    dh[h <= 0] = 0\n", "", "mask", (r"mask|relu|missing|zero|line",)),
    Wrong("    dscores /= N\n", "", "factor missing"),
]
