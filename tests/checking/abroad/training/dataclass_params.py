from dataclasses import dataclass

import numpy as np


@dataclass
class Params:
    w: np.ndarray
    b: np.ndarray
    out: np.ndarray


def objective(p, x, y):
    a = x @ p.w + p.b
    h = np.logaddexp(0, a)
    r = h @ p.out - y
    loss = 0.5 * np.mean(r**2)
    dr = r / len(r)
    dout = h.T @ dr
    da = np.outer(dr, p.out) / (1 + np.exp(-a))
    return loss, Params(w=x.T @ da, b=da.sum(0), out=dout)


# ---- the case
TARGET = objective
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return Params(s((3, 4)), s(4), s(4)), s((5, 3)), s(5)
WRONG = [
    Wrong("/ (1 + np.exp(-a))", "/ (1 + np.exp(a))", "sign", (r"sign|exp|derivative|−a|-a|should",)),
    Wrong("b=da.sum(0)", "b=da.mean(0)", "sum for mean"),
]
