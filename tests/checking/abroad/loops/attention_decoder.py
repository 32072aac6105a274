import numpy as np


def softmax(e):
    e = np.exp(e - e.max())
    return e / e.sum()


def decode(keys, s, Ws, Wc):
    """Dot-product attention over keys (L, H), a tanh state, three steps."""
    steps = []
    for _ in range(3):
        a = softmax(keys @ s)
        c = a @ keys
        s_new = np.tanh(Ws @ s + Wc @ c)
        steps.append((s, a, c, s_new))
        s = s_new
    return s, (keys, Ws, Wc, steps)


def decode_grad(ds, cache):
    keys, Ws, Wc, steps = cache
    dkeys, dWs, dWc = np.zeros_like(keys), np.zeros_like(Ws), np.zeros_like(Wc)
    for s, a, c, s_new in steps[::-1]:
        dz = ds * (1 - s_new**2)
        dWs += np.outer(dz, s)
        dWc += np.outer(dz, c)
        dc = Wc.T @ dz
        da = keys @ dc
        dkeys += np.outer(a, dc)
        de = a * (da - a @ da)
        dkeys += np.outer(de, s)
        ds = Ws.T @ dz + keys.T @ de
    return dkeys, ds, dWs, dWc


# ---- the case
TARGET = (decode, decode_grad)
inputs = normal((4, 3), 3, (3, 3), (3, 3))
WRONG = [
    Wrong("ds = Ws.T @ dz + keys.T @ de", "ds = Ws.T @ dz", "term missing"),
    Wrong("        dkeys += np.outer(de, s)\n", "", "term missing"),
    Wrong("de = a * (da - a @ da)", "de = a * da", "term missing"),
    Wrong("dkeys += np.outer(de, s)", "dkeys += np.outer(de, s_new)", "name"),
]
