import numpy as np


def xent_forward(logits, targets, lengths, smooth=0.1):
    """logits: (B, T, V); targets: (B, T); tokens after lengths are padding."""
    B, T, V = logits.shape
    mask = (np.arange(T)[None, :] < lengths[:, None]).astype(logits.dtype)
    shifted = logits - logits.max(-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    q = np.full((B, T, V), smooth / V)
    bi, ti = np.indices((B, T))
    q[bi, ti, targets] += 1 - smooth
    loss = -(q * logp).sum(-1)
    total = (loss * mask).sum() / mask.sum()
    return total, (logp, q, mask)


def xent_backward(dout, cache):
    logp, q, mask = cache
    dlogits = np.exp(logp) - q
    dlogits *= mask[:, :, None]
    dlogits /= mask.sum()
    return dlogits * dout


# ---- the case
TARGET = (xent_forward, xent_backward)
def inputs(rng):
    return rng.standard_normal((3, 4, 5)), rng.integers(0, 5, (3, 4)), np.array([4, 2, 3])
WRONG = [
    Wrong("    dlogits *= mask[:, :, None]\n", "", "mask"),
    Wrong("dlogits /= mask.sum()", "dlogits /= mask.size", "factor wrong", (r"size|sum|factor|times",)),
]
