import numpy as np


def compute(theta, data):
    x, labels = data
    W, b = theta
    logits = x @ W + b
    logits = logits - np.max(logits, axis=1, keepdims=True)
    logZ = np.log(np.sum(np.exp(logits), axis=1))
    n = x.shape[0]
    loss = np.mean(logZ - logits[np.arange(n), labels])
    onehot = np.eye(W.shape[1])[labels]
    delta = (np.exp(logits - logZ[:, None]) - onehot) / n
    return loss, (x.T @ delta, delta.sum(0))


def loss_and_grad(W, b, x, labels):
    loss, (gW, gb) = compute((W, b), (x, labels))
    return loss, [gW, gb]


# ---- the case
TARGET = loss_and_grad
CALL = "step"
OPTIONS = {"wrt": ("W", "b")}
def inputs(rng):
    return rng.standard_normal((3, 4)), rng.standard_normal(4), rng.standard_normal((5, 3)), rng.integers(0, 4, 5)
WRONG = [
    Wrong("- onehot) / n", "- onehot)", "factor missing"),
    Wrong("delta.sum(0))", "delta.mean(0))", "sum for mean"),
]
