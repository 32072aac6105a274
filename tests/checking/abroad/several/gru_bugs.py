import numpy as np

sg = lambda z: 1 / (1 + np.exp(-z))


def gru_cell(x, h, Wz, Wr, Wn, Uz, Ur, Un):
    z = sg(x @ Wz + h @ Uz)
    r = sg(x @ Wr + h @ Ur)
    hu = h @ Un
    n = np.tanh(x @ Wn + r * hu)
    return (1 - z) * n + z * h, (x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, hu, n)


def gru_cell_back(d, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, hu, n = cache
    dn = d * (1 - z) * (1 - n * n)
    dz = d * (h - n) * z * (1 - z)
    dr = dn * hu * r * (1 - r)
    dhu = dn * r
    dx = dz @ Wz.T + dr @ Wr.T + dn @ Wn.T
    dh = d * z + dz @ Uz.T + dr @ Ur.T + dhu @ Un.T
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, h.T @ dhu


# ---- the case
TARGET = (gru_cell, gru_cell_back)
inputs = normal((3, 2), (3, 2), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2))
WRONG = [
    (Wrong("dz = d * (h - n)", "dz = d * (n - h)", "sign"), Wrong("dhu = dn * r", "dhu = dn", "factor missing")),
    (Wrong("dh = d * z + dz", "dh = dz", "term missing"), Wrong("dr = dn * hu * r", "dr = dn * h * r", "name")),
]
