import numpy as np


def mix_tokens(x, W):
    """x (B, T, C): mixes over T, as MLP-mixers do."""
    y = np.swapaxes(np.swapaxes(x, 1, 2) @ W, 1, 2)
    return y, (x, W)


def mix_tokens_bwd(dy, cache):
    x, W = cache
    dyt = dy.transpose(0, 2, 1)
    dW = np.tensordot(x, dy, axes=([0, 2], [0, 2]))
    dx = (dyt @ W.T).transpose(0, 2, 1)
    return dx, dW


# ---- the case
TARGET = (mix_tokens, mix_tokens_bwd)
inputs = normal((2, 3, 4), (3, 3))
WRONG = [
    Wrong("(dyt @ W.T)", "(dyt @ W)", "transpose"),
    Wrong("np.tensordot(x, dy, axes", "np.tensordot(dy, x, axes", "swapped", (r"swap|transpos|order",)),
]
