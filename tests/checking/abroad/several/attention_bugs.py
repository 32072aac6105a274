import numpy as np


def attention(q, k, v):
    d = q.shape[-1]
    s = q @ k.T / np.sqrt(d)
    s = s - s.max(-1, keepdims=True)
    a = np.exp(s)
    a = a / a.sum(-1, keepdims=True)
    return a @ v, (q, k, v, a)


def attention_backward(do, cache):
    q, k, v, a = cache
    d = q.shape[-1]
    dv = a.T @ do
    da = do @ v.T
    ds = a * (da - np.sum(da * a, axis=-1, keepdims=True))
    ds = ds / np.sqrt(d)
    dq = ds @ k
    dk = ds.T @ q
    return dq, dk, dv


# ---- the case
TARGET = (attention, attention_backward)
inputs = normal((4, 3), (4, 3), (4, 3))
WRONG = [
    (Wrong("dv = a.T @ do", "dv = a @ do", "transpose"), Wrong("    ds = ds / np.sqrt(d)\n", "    ds = ds / d\n", "factor wrong")),
    (Wrong("dk = ds.T @ q", "dk = ds @ q", "transpose"), Wrong("np.sum(da * a, axis=-1", "np.sum(da, axis=-1", "factor missing")),
    (Wrong("dq = ds @ k", "dq = -ds @ k", "sign"), Wrong("dk = ds.T @ q", "dk = ds.T @ k", "name")),
]
