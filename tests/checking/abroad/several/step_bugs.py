import numpy as np


def loss_and_grads(params, x, y):
    w1, w2 = params["w1"], params["w2"]
    a = x @ w1
    h = a / (1 + np.exp(-a))
    p = h @ w2
    loss = np.mean((p - y) ** 2)
    dp = 2 * (p - y) / p.size
    dw2 = h.T @ dp
    dh = dp @ w2.T
    s = 1 / (1 + np.exp(-a))
    da = dh * (s + a * s * (1 - s))
    dw1 = x.T @ da
    return loss, {"w1": dw1, "w2": dw2}


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"w1": s((3, 4)), "w2": s((4, 2))}, s((5, 3)), s((5, 2))
WRONG = [
    (Wrong("dw2 = h.T @ dp", "dw2 = a.T @ dp", "name"), Wrong("(s + a * s * (1 - s))", "(s + s * (1 - s))", "factor missing")),
    (Wrong("dp = 2 * (p - y) / p.size", "dp = (p - y) / p.size", "factor missing"), Wrong("da = dh * (s + a", "da = dh * (s - a", "sign")),
]
