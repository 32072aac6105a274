import numpy as np


def reparameterize(mu, log_sigma, noise):
    sigma = np.exp(log_sigma)
    z = mu + sigma * noise
    return z, (sigma, noise)


def reparameterize_grad(dz, cache):
    sigma, noise = cache
    return dz, dz * noise * sigma, dz * sigma


# ---- the case
TARGET = (reparameterize, reparameterize_grad)
inputs = normal((3, 2), (3, 2), (3, 2))
WRONG = [
    Wrong("dz * noise * sigma", "dz * noise", "factor missing"),
    Wrong("return dz, dz * noise * sigma, dz * sigma", "return dz, dz * sigma, dz * noise * sigma", "swapped"),
]
