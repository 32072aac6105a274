import numpy as np


def bn(x, gamma, beta):
    m = x.mean(0)
    xc = x - m
    v = (xc**2).mean(0)
    s = np.sqrt(v + 1e-5)
    xn = xc / s
    return gamma * xn + beta, (xc, s, xn, gamma)


def bn_back(dout, cache):
    xc, s, xn, gamma = cache
    N = len(xc)
    dbeta = dout.sum(0)
    dgamma = (dout * xn).sum(0)
    dxn = gamma * dout
    dxc = dxn / s
    ds = -(dxn * xc / s**2).sum(0)
    dv = 0.5 * ds / s
    dxc += 2 / N * xc * dv
    dm = dxc.sum(0)
    dx = dxc - dm / N
    return dx, dgamma, dbeta


# ---- the case
TARGET = (bn, bn_back)
inputs = normal((5, 3), 3, 3)
WRONG = [
    (Wrong("dv = 0.5 * ds / s", "dv = ds / s", "factor missing"), Wrong("dbeta = dout.sum(0)", "dbeta = -dout.sum(0)", "sign")),
    (Wrong("ds = -(dxn", "ds = (dxn", "sign"), Wrong("dgamma = (dout * xn).sum(0)", "dgamma = (dout * xc).sum(0)", "name")),
]
