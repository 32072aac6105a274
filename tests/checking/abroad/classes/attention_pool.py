import numpy as np


class AttentionPool:
    """y = sum_t softmax(x_t . q)_t x_t"""

    def __init__(self, d):
        self.q = np.random.RandomState(5).randn(d)
        self.dq = None

    def forward(self, x):
        self.x = x
        s = x @ self.q
        e = np.exp(s - s.max(axis=1, keepdims=True))
        self.a = e / e.sum(axis=1, keepdims=True)
        return np.einsum("nt,ntd->nd", self.a, x)

    def backward(self, dy):
        da = np.einsum("nd,ntd->nt", dy, self.x)
        ds = self.a * (da - (da * self.a).sum(axis=1, keepdims=True))
        self.dq = np.einsum("nt,ntd->d", ds, self.x)
        dx = self.a[:, :, None] * dy[:, None, :]
        dx += ds[:, :, None] * self.q
        return dx


# ---- the case
TARGET = AttentionPool(3)
GRADS = {"self.q": "self.dq"}
inputs = normal((4, 5, 3))
WRONG = [
    Wrong("        dx += ds[:, :, None] * self.q\n", "", "term missing"),
    Wrong("(da * self.a).sum(axis=1, keepdims=True)", "(da * self.a).sum(axis=0, keepdims=True)", "axis"),
    Wrong('self.dq = np.einsum("nt,ntd->d", ds, self.x)', 'self.dq = np.einsum("nt,ntd->d", da, self.x)', "name"),
]
