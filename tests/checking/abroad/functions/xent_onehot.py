import numpy as np


def cross_entropy(logits, labels):
    # labels are class indices
    m = logits.shape[0]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = -log_probs[np.arange(m), labels].mean()
    return loss, (np.exp(log_probs), labels)


def cross_entropy_backward(dloss, cache):
    probs, labels = cache
    m = labels.shape[0]
    dlogits = probs.copy()
    dlogits[np.arange(m), labels] -= 1
    return dloss * dlogits / m


# ---- the case
TARGET = (cross_entropy, cross_entropy_backward)
def inputs(rng):
    return rng.standard_normal((6, 4)), rng.integers(0, 4, 6)
WRONG = [
    Wrong("return dloss * dlogits / m", "return dloss * dlogits", "factor missing"),
    Wrong("dlogits[np.arange(m), labels] -= 1", "dlogits[np.arange(m), labels] += 1", "sign"),
    Wrong("return dloss * dlogits / m", "return dlogits / m", "factor missing", (r"dloss|cotangent|dy",)),
]
