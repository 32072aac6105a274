import numpy as np


def sig(z):
    return 1 / (1 + np.exp(-z))


def loss_and_grads(params, x, y):
    """A minimal gated unit over time; x (T, D), y (H,)."""
    Wf, Uf, Wh, Uh = (params[k] for k in ("Wf", "Uf", "Wh", "Uh"))
    T = x.shape[0]
    h = np.zeros(Uf.shape[0])
    hs, fs, cs = [h], [], []
    for t in range(T):
        f = sig(Wf @ x[t] + Uf @ h)
        c = np.tanh(Wh @ x[t] + Uh @ (f * h))
        h = (1 - f) * h + f * c
        hs.append(h); fs.append(f); cs.append(c)
    err = h - y
    loss = 0.5 * err @ err
    dWf, dUf, dWh, dUh = [np.zeros_like(p) for p in (Wf, Uf, Wh, Uh)]
    dh = err
    for t in reversed(range(T)):
        f, c, hp = fs[t], cs[t], hs[t]
        dc = dh * f
        df = dh * (c - hp)
        dhp = dh * (1 - f)
        dzc = dc * (1 - c ** 2)
        dWh += np.outer(dzc, x[t])
        dUh += np.outer(dzc, f * hp)
        dfh = Uh.T @ dzc
        df = df + dfh * hp
        dhp = dhp + dfh * f
        dzf = df * f * (1 - f)
        dWf += np.outer(dzf, x[t])
        dUf += np.outer(dzf, hp)
        dh = dhp + Uf.T @ dzf
    return loss, {"Wf": dWf, "Uf": dUf, "Wh": dWh, "Uh": dUh}


# ---- the case
TARGET = loss_and_grads
CALL = "step"
def inputs(rng):
    return {k: rng.standard_normal(s) * 0.7 for k, s in (("Wf", (3, 2)), ("Uf", (3, 3)), ("Wh", (3, 2)), ("Uh", (3, 3)))}, rng.standard_normal((4, 2)), rng.standard_normal(3)
WRONG = [
    Wrong("        df = df + dfh * hp\n", "", "term missing"),
    Wrong("dh = dhp + Uf.T @ dzf", "dh = dhp", "term missing"),
    Wrong("dUh += np.outer(dzc, f * hp)", "dUh += np.outer(dzc, hp)", "factor missing"),
]
