import numpy as np

sig = lambda z: 1 / (1 + np.exp(-z))


def gru(x, h, Wz, Uz, Wr, Ur, Wn, Un):
    saved = []
    for t in range(x.shape[0]):
        z = sig(x[t] @ Wz + h @ Uz)
        r = sig(x[t] @ Wr + h @ Ur)
        rh = r * h
        n = np.tanh(x[t] @ Wn + rh @ Un)
        saved.append((x[t], h, z, r, rh, n))
        h = (1 - z) * h + z * n
    return h, (saved, Wz, Uz, Wr, Ur, Wn, Un)


def gru_backward(dh, cache):
    saved, Wz, Uz, Wr, Ur, Wn, Un = cache
    dWz, dUz, dWr, dUr, dWn, dUn = map(np.zeros_like, (Wz, Uz, Wr, Ur, Wn, Un))
    dx = []
    while saved_left(saved, dx):
        xt, h, z, r, rh, n = saved[len(saved) - 1 - len(dx)]
        dn = dh * z * (1 - n * n)
        dz = dh * (n - h) * z * (1 - z)
        drh = dn @ Un.T
        dr = drh * h * r * (1 - r)
        dWz += xt.T @ dz; dUz += h.T @ dz
        dWr += xt.T @ dr; dUr += h.T @ dr
        dWn += xt.T @ dn; dUn += rh.T @ dn
        dx.append(dz @ Wz.T + dr @ Wr.T + dn @ Wn.T)
        dh = dh * (1 - z) + drh * r + dz @ Uz.T + dr @ Ur.T
    return np.array(dx[::-1]), dh, dWz, dUz, dWr, dUr, dWn, dUn


def saved_left(saved, done):
    return len(done) < len(saved)


# ---- the case
TARGET = (gru, gru_backward)
inputs = normal((3, 2, 2), (2, 3), (2, 3), (3, 3), (2, 3), (3, 3), (2, 3), (3, 3))
WRONG = [
    Wrong("dh * (n - h) * z * (1 - z)", "dh * (h - n) * z * (1 - z)", "sign"),
    Wrong(" + drh * r + dz", " + dz", "term missing"),
    Wrong("dUn += rh.T @ dn", "dUn += h.T @ dn", "name"),
]
