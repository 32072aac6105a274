import numpy as np


def vae(params, x, eps):
    We, Wm, Ws, Wd = params["We"], params["Wm"], params["Ws"], params["Wd"]
    n = len(x)
    h = np.tanh(x @ We)
    mu = h @ Wm
    ls = h @ Ws
    z = mu + np.exp(ls) * eps
    xr = z @ Wd
    rec = ((xr - x) ** 2).sum() / n
    kl = 0.5 * (mu**2 + np.exp(2 * ls) - 2 * ls - 1).sum() / n
    loss = rec + kl
    # gradients
    dxr = 2 * (xr - x) / n
    dWd = z.T @ dxr
    dz = dxr @ Wd.T
    dmu = dz + mu / n
    dls = dz * np.exp(ls) * eps + (np.exp(2 * ls) - 1) / n
    dWm = h.T @ dmu
    dWs = h.T @ dls
    dh = dmu @ Wm.T + dls @ Ws.T
    dWe = x.T @ (dh * (1 - h**2))
    return loss, {"dWe": dWe, "dWm": dWm, "dWs": dWs, "dWd": dWd}


# ---- the case
TARGET = vae
CALL = "step"
def inputs(rng):
    s = lambda *shape: 0.5 * rng.standard_normal(shape)
    return dict(We=s(4, 3), Wm=s(3, 2), Ws=s(3, 2), Wd=s(2, 4)), s(5, 4), s(5, 2)
WRONG = [
    Wrong("dmu = dz + mu / n", "dmu = dz", "term missing"),
    Wrong("dz * np.exp(ls) * eps +", "dz * eps +", "factor missing"),
    Wrong("(np.exp(2 * ls) - 1) / n", "(np.exp(ls) - 1) / n", "factor missing", (r"2|exp|factor|ls",)),
    Wrong("dh = dmu @ Wm.T + dls @ Ws.T", "dh = dmu @ Wm.T", "term missing"),
]
