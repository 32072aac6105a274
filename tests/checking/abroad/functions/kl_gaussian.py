import numpy as np


def kl(mu, logvar):
    """KL(q || N(0, 1)) summed over latents, mean over the batch"""
    out = -0.5 * np.sum(1 + logvar - mu**2 - np.exp(logvar), axis=1).mean()
    return out, (mu, logvar)


def kl_backward(dout, cache):
    mu, logvar = cache
    n = mu.shape[0]
    dmu = dout * mu / n
    dlogvar = dout * 0.5 * (np.exp(logvar) - 1) / n
    return dmu, dlogvar


# ---- the case
TARGET = (kl, kl_backward)
inputs = normal((4, 3), (4, 3))
WRONG = [
    Wrong("0.5 * (np.exp(logvar) - 1)", "0.5 * np.exp(logvar)", "term missing"),
    Wrong("0.5 * (np.exp(logvar) - 1)", "0.5 * (np.exp(0.5 * logvar) - 1)", "factor extra", (r"0\.5|exp|factor|scale",)),
    Wrong("dmu = dout * mu / n", "dmu = dout * 2 * mu / n", "factor extra"),
]
