import numpy as np


def tdnn(x, K, b):
    frames = []
    width = K.shape[0]
    for t in range(len(x) - width + 1):
        acc = b.copy()
        for k in range(width):
            acc = acc + x[t + k] @ K[k]
        frames.append(np.maximum(acc, 0))
    out = np.stack(frames)
    return out, (x, K, out)


def tdnn_grad(dout, cache):
    x, K, out = cache
    gx, gK = np.zeros_like(x), np.zeros_like(K)
    gated = [d * (o > 0) for d, o in zip(dout, out)]
    gb = sum(gated)
    for t, d in enumerate(gated):
        for k in range(K.shape[0]):
            gx[t + k] += K[k] @ d
            gK[k] += np.outer(x[t + k], d)
    return gx, gK, gb


# ---- the case
TARGET = (tdnn, tdnn_grad)
inputs = normal((6, 2), (3, 2, 3), 3)
WRONG = [
    Wrong("gx[t + k] += K[k] @ d", "gx[t] += K[k] @ d", "index"),
    Wrong("gK[k] += np.outer(x[t + k], d)", "gK[k] += np.outer(x[t], d)", "index"),
    Wrong("[d * (o > 0) for d, o in zip(dout, out)]", "[d for d, o in zip(dout, out)]", "mask"),
]
