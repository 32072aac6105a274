import numpy as np


def ln(x, g):
    c = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5)
    return g * c * r, (c * r, r, g)


def ln_back(d, cache):
    h, r, g = cache
    dg = (d * h).sum(0)
    d = d * g
    return r * (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True)), dg


def loss_and_grads(p, x, y):
    n1, c1 = ln(x, p["g1"])
    q, k, v = n1 @ p["Wq"], n1 @ p["Wk"], n1 @ p["Wv"]
    s = q @ k.T / np.sqrt(q.shape[1])
    s = np.where(np.tril(np.ones(s.shape)) > 0, s, -1e9)
    a = np.exp(s - s.max(1, keepdims=True))
    a /= a.sum(1, keepdims=True)
    x1 = x + a @ v
    n2, c2 = ln(x1, p["g2"])
    u = n2 @ p["W1"]
    m = np.maximum(u, 0)
    out = x1 + m @ p["W2"]
    loss = 0.5 * ((out - y) ** 2).sum()

    g = {}
    dout = out - y
    g["W2"] = m.T @ dout
    du = (dout @ p["W2"].T) * (u > 0)
    g["W1"] = n2.T @ du
    dx1, g["g2"] = ln_back(du @ p["W1"].T, c2)
    dx1 += dout
    dv = a.T @ dx1
    da = dx1 @ v.T
    ds = a * (da - (da * a).sum(1, keepdims=True)) / np.sqrt(q.shape[1])
    dq, dk = ds @ k, ds.T @ q
    g["Wq"], g["Wk"], g["Wv"] = n1.T @ dq, n1.T @ dk, n1.T @ dv
    dn1 = dq @ p["Wq"].T + dk @ p["Wk"].T + dv @ p["Wv"].T
    _, g["g1"] = ln_back(dn1, c1)
    return loss, g


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"g1": s(4), "g2": s(4), "Wq": s((4, 4)), "Wk": s((4, 4)), "Wv": s((4, 4)), "W1": s((4, 5)), "W2": s((5, 4))}, s((3, 4)), s((3, 4))
WRONG = [
    Wrong("    dx1 += dout\n", "", "term missing"),
    Wrong("dv = a.T @ dx1", "dv = a @ dx1", "transpose"),
    Wrong("dk @ p[\"Wk\"].T + dv", "dv", "term missing"),
    Wrong("    d = d * g\n", "", "factor missing"),
]
