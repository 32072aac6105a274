import numpy as np


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def lstm_forward(xs, Wf, Wi, Wo, Wc, h, c):
    """xs: (T, D); every gate matrix is (H + D, H)."""
    tape = []
    hs = []
    for x in xs:
        v = np.concatenate([h, x])
        f = sigmoid(v @ Wf)
        i = sigmoid(v @ Wi)
        o = sigmoid(v @ Wo)
        g = np.tanh(v @ Wc)
        c_old = c
        c = f * c_old + i * g
        tc = np.tanh(c)
        h = o * tc
        tape.append((v, f, i, o, g, c_old, tc))
        hs.append(h)
    return np.stack(hs), (tape, Wf, Wi, Wo, Wc)


def lstm_backward(dhs, cache):
    tape, Wf, Wi, Wo, Wc = cache
    H = Wf.shape[1]
    dWf, dWi, dWo, dWc = [np.zeros_like(w) for w in (Wf, Wi, Wo, Wc)]
    dxs = []
    dh_next = np.zeros(H)
    dc_next = np.zeros(H)
    for dh, (v, f, i, o, g, c_old, tc) in zip(dhs[::-1], reversed(tape)):
        dh = dh + dh_next
        do = dh * tc * o * (1 - o)
        dc = dh * o * (1 - tc**2) + dc_next
        df = dc * c_old * f * (1 - f)
        di = dc * g * i * (1 - i)
        dg = dc * i * (1 - g**2)
        dWf += np.outer(v, df)
        dWi += np.outer(v, di)
        dWo += np.outer(v, do)
        dWc += np.outer(v, dg)
        dv = Wf @ df + Wi @ di + Wo @ do + Wc @ dg
        dh_next = dv[:H]
        dc_next = dc * f
        dxs.append(dv[H:])
    return np.stack(dxs[::-1]), dWf, dWi, dWo, dWc, dh_next, dc_next


# ---- the case
TARGET = (lstm_forward, lstm_backward)
inputs = normal((4, 2), (5, 3), (5, 3), (5, 3), (5, 3), 3, 3)
WRONG = [
    Wrong(" + dc_next\n", "\n", "carry"),
    Wrong("dc_next = dc * f\n", "dc_next = dc\n", "factor missing"),
    Wrong("dg = dc * i * (1 - g**2)", "dg = dc * i * (1 - g)", "local derivative"),
    Wrong("np.stack(dxs[::-1])", "np.stack(dxs)", "order"),
]
