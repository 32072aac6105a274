import numpy as np


def attn_with_biases(x, Wq, bq, Wk, bk, Wv):
    q, k, v = x @ Wq + bq, x @ Wk + bk, x @ Wv
    s = q @ k.T / np.sqrt(Wq.shape[1])
    a = np.exp(s - s.max(-1, keepdims=True))
    a /= a.sum(-1, keepdims=True)
    return a @ v, (x, Wq, Wk, Wv, q, k, v, a)


def attn_with_biases_bwd(dy, cache):
    x, Wq, Wk, Wv, q, k, v, a = cache
    dv = a.T @ dy
    da = dy @ v.T
    ds = a * (da - (da * a).sum(-1, keepdims=True)) / np.sqrt(Wq.shape[1])
    dq, dk = ds @ k, ds.T @ q
    dx = dq @ Wq.T + dk @ Wk.T + dv @ Wv.T
    # the gradient of bk is zero in exact arithmetic
    return dx, x.T @ dq, dq.sum(0), x.T @ dk, dk.sum(0), x.T @ dv


# ---- the case
TARGET = (attn_with_biases, attn_with_biases_bwd)
inputs = normal((4, 3), (3, 3), 3, (3, 3), 3, (3, 3))
WRONG = [
    Wrong("dk @ Wk.T +", "dq @ Wk.T +", "name"),
    Wrong("(da - (da * a).sum(-1, keepdims=True))", "da", "term missing"),
]
