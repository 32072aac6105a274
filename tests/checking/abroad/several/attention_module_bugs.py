import numpy as np


class Attn:
    def __init__(self, Wq, Wk, Wv):
        self.Wq, self.Wk, self.Wv = Wq, Wk, Wv

    def forward(self, x):
        self.x = x
        self.q, self.k, self.v = x @ self.Wq, x @ self.Wk, x @ self.Wv
        s = self.q @ self.k.T
        e = np.exp(s - s.max(1, keepdims=True))
        self.a = e / e.sum(1, keepdims=True)
        return self.a @ self.v

    def backward(self, dy):
        dv = self.a.T @ dy
        da = dy @ self.v.T
        ds = self.a * (da - (self.a * da).sum(1, keepdims=True))
        dq = ds @ self.k
        dk = ds.T @ self.q
        self.dWq = self.x.T @ dq
        self.dWk = self.x.T @ dk
        self.dWv = self.x.T @ dv
        return dq @ self.Wq.T + dk @ self.Wk.T + dv @ self.Wv.T


def run(x, Wq, Wk, Wv):
    m = Attn(Wq, Wk, Wv)
    return m.forward(x), m


def run_back(dy, m):
    dx = m.backward(dy)
    return dx, m.dWq, m.dWk, m.dWv


# ---- the case
TARGET = (run, run_back)
inputs = normal((3, 3), (3, 3), (3, 3), (3, 3))
WRONG = [
    (Wrong("dk = ds.T @ self.q", "dk = ds @ self.q", "transpose"), Wrong("self.dWv = self.x.T @ dv", "self.dWv = self.x.T @ dy", "name")),
    (Wrong("dv = self.a.T @ dy", "dv = self.a @ dy", "transpose"), Wrong("dq = ds @ self.k", "dq = ds @ self.q", "name")),
]
