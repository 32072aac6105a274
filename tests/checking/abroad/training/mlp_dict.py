import numpy as np


def loss_and_grads(params, x, y):
    W1, b1, W2, b2 = params["W1"], params["b1"], params["W2"], params["b2"]
    n = x.shape[0]
    z1 = x.dot(W1) + b1
    h = np.maximum(z1, 0.01 * z1)
    scores = h.dot(W2) + b2
    shifted = scores - scores.max(axis=1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = -logp[np.arange(n), y].mean() + 0.05 * (W1 ** 2).sum()
    dscores = np.exp(logp)
    dscores[np.arange(n), y] -= 1
    dscores /= n
    grads = {}
    grads["W2"] = h.T.dot(dscores)
    grads["b2"] = dscores.sum(axis=0)
    dh = dscores.dot(W2.T)
    dz1 = np.where(z1 > 0, dh, 0.01 * dh)
    grads["W1"] = x.T.dot(dz1) + 0.1 * W1
    grads["b1"] = dz1.sum(axis=0)
    return loss, grads


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    p = {"W1": rng.standard_normal((4, 5)), "b1": rng.standard_normal(5), "W2": rng.standard_normal((5, 3)), "b2": rng.standard_normal(3)}
    return p, rng.standard_normal((6, 4)), rng.integers(0, 3, 6)
WRONG = [
    Wrong("grads[\"W1\"] = x.T.dot(dz1) + 0.1 * W1", "grads[\"W1\"] = x.T.dot(dz1) + 0.05 * W1", "factor missing"),
    Wrong("dz1 = np.where(z1 > 0, dh, 0.01 * dh)", "dz1 = np.where(dh > 0, dh, 0.01 * dh)", "mask"),
    Wrong("    dscores /= n\n", "", "factor missing"),
    (Wrong("dz1 = np.where(z1 > 0, dh, 0.01 * dh)", "dz1 = np.where(z1 > 0, dh, 0)", "mask", (r"mask|branch|condition|number|factor|0.01|zero|missing",)), Wrong('grads["b2"] = dscores.sum(axis=0)', 'grads["b2"] = dscores.mean(axis=0)', "sum for mean")),
]
