import numpy as np


class Attention:
    def __init__(self, d):
        r = np.random.RandomState(0)
        self.Wq, self.Wk, self.Wv, self.Wo = (r.randn(d, d) / 2 for _ in range(4))

    def forward(self, x, mask=None):
        self.x = x
        self.q, self.k, self.v = x @ self.Wq, x @ self.Wk, x @ self.Wv
        s = self.q @ self.k.transpose(0, 2, 1) / np.sqrt(x.shape[-1])
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -1e30)
        e = np.exp(s - s.max(-1, keepdims=True))
        self.p = e / e.sum(-1, keepdims=True)
        self.o = self.p @ self.v
        return self.o @ self.Wo

    def backward(self, g):
        flat = lambda a, b: np.tensordot(a, b, axes=([0, 1], [0, 1]))
        self.dWo = flat(self.o, g)
        do = g @ self.Wo.T
        dv = self.p.transpose(0, 2, 1) @ do
        dp = do @ self.v.transpose(0, 2, 1)
        ds = self.p * (dp - (dp * self.p).sum(-1, keepdims=True)) / np.sqrt(self.x.shape[-1])
        dq = ds @ self.k
        dk = ds.transpose(0, 2, 1) @ self.q
        self.dWq, self.dWk, self.dWv = flat(self.x, dq), flat(self.x, dk), flat(self.x, dv)
        return dq @ self.Wq.T + dk @ self.Wk.T + dv @ self.Wv.T


# ---- the case
TARGET = Attention(3)
GRADS = {"self.Wq": "self.dWq", "self.Wk": "self.dWk", "self.Wv": "self.dWv", "self.Wo": "self.dWo"}
inputs = normal((2, 3, 3))
WRONG = [
    Wrong("dk = ds.transpose(0, 2, 1) @ self.q", "dk = ds @ self.q", "transpose"),
    Wrong("dq @ self.Wq.T + dk @ self.Wk.T + dv", "dq @ self.Wq.T + dv", "term missing"),
    Wrong("self.dWo = flat(self.o, g)", "self.dWo = flat(self.v, g)", "name"),
]
