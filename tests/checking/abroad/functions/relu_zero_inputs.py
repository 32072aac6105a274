import numpy as np


def relu(x):
    mask = x > 0
    return x * mask, mask


def relu_bwd(dy, mask):
    return dy * mask


# ---- the case
TARGET = (relu, relu_bwd)
def inputs(rng):
    # sparse activations, many exact zeros
    return (np.maximum(rng.standard_normal((6, 5)), 0) * rng.integers(0, 2, (6, 5)),)
KINK = True
WRONG = [
    Wrong("    return dy * mask\n", "    return dy\n", "mask", (), "usual"),
    Wrong("    return dy * mask\n", "    return dy * (1 - mask)\n", "mask", (), "usual"),
]
def usual(rng):
    return (rng.standard_normal((6, 5)),)
