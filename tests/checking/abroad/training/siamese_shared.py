import numpy as np


def loss_and_grads(params, xa, xb, same):
    W, b = params["W"], params["b"]

    def embed(x):
        return np.tanh(x @ W + b)

    ea, eb = embed(xa), embed(xb)
    diff = ea - eb
    s = (diff**2).sum(1)
    loss = np.mean((s - same) ** 2)

    ds = 2 * (s - same) / len(s)
    ddiff = 2 * diff * ds[:, None]
    grads = {k: np.zeros_like(v) for k, v in params.items()}
    for x, e, d in ((xa, ea, ddiff), (xb, eb, -ddiff)):
        dz = d * (1 - e * e)
        grads["W"] += x.T @ dz
        grads["b"] += dz.sum(axis=0)
    return loss, grads


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    s = rng.standard_normal
    return {"W": s((3, 2)), "b": s(2)}, s((5, 3)), s((5, 3)), rng.integers(0, 2, 5).astype(float)
WRONG = [
    Wrong("(xb, eb, -ddiff)", "(xb, eb, ddiff)", "sign"),
    Wrong('grads["W"] += x.T @ dz', 'grads["W"] = x.T @ dz', "accumulate"),
]
