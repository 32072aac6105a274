import numpy as np


def nll_forward(log_rate, counts, w):
    rate = np.exp(log_rate)
    per = w * (rate - counts * log_rate)
    loss = per.sum() / w.sum()
    return loss, (log_rate, rate, counts, w, loss)


def nll_backward(dloss, cache):
    log_rate, rate, counts, w, loss = cache
    d_log_rate = dloss * w * (rate - counts) / w.sum()
    dw = dloss * ((rate - counts * log_rate) - loss) / w.sum()
    return d_log_rate, dw


# ---- the case
TARGET = (nll_forward, nll_backward)
OPTIONS = {"wrt": ("log_rate", "w")}
def inputs(rng):
    return rng.standard_normal((4, 3)), rng.integers(0, 5, (4, 3)), rng.uniform(0.5, 2.0, (4, 3))
WRONG = [
    Wrong("dloss * ((rate - counts * log_rate) - loss) / w.sum()", "dloss * (rate - counts * log_rate) / w.sum()", "term missing"),
    Wrong("dloss * w * (rate - counts) / w.sum()", "dloss * w * (rate - counts * rate) / w.sum()", "factor extra"),
]
