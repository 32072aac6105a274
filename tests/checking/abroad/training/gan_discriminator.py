import numpy as np


def d_loss(params, real, fake):
    """Non-saturating discriminator loss of a one-hidden-layer net, both batches at once."""
    W, b, v = params["W"], params["b"], params["v"]

    def net(x):
        a = np.tanh(x @ W + b)
        return a, a @ v

    ar, sr = net(real)
    af, sf = net(fake)
    loss = np.log1p(np.exp(-sr)).mean() + np.log1p(np.exp(sf)).mean()
    gr = -1 / (1 + np.exp(sr)) / len(sr)
    gf = 1 / (1 + np.exp(-sf)) / len(sf)
    dv = ar.T @ gr + af.T @ gf
    dzr = np.outer(gr, v) * (1 - ar**2)
    dzf = np.outer(gf, v) * (1 - af**2)
    return loss, {"W": real.T @ dzr + fake.T @ dzf, "b": dzr.sum(0) + dzf.sum(0), "v": dv}


# ---- the case
TARGET = d_loss
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"W": s((3, 4)), "b": s(4), "v": s(4)}, s((5, 3)), s((6, 3))
WRONG = [
    Wrong("gr = -1 / (1", "gr = 1 / (1", "sign"),
    Wrong('"W": real.T @ dzr + fake.T @ dzf', '"W": real.T @ dzr', "term missing"),
]
