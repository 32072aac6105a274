import numpy as np


class VanillaRNN:
    def __init__(self, n_in, n_h):
        r = np.random.RandomState(3)
        self.Wxh, self.Whh, self.bh = r.randn(n_in, n_h), r.randn(n_h, n_h) / 2, np.zeros(n_h)

    def forward(self, X):
        self.X = X
        self.H = [np.zeros((X.shape[1], len(self.bh)))]
        for x in X:
            self.H.append(np.tanh(x @ self.Wxh + self.H[-1] @ self.Whh + self.bh))
        return np.array(self.H[1:])

    def backward(self, dH):
        self.dWxh = np.zeros_like(self.Wxh)
        self.dWhh = np.zeros_like(self.Whh)
        self.dbh = np.zeros_like(self.bh)
        dX = np.zeros_like(self.X)
        dnext = 0
        for t in range(len(dH))[::-1]:
            draw = (dH[t] + dnext) * (1 - self.H[t + 1] ** 2)
            self.dWxh += self.X[t].T @ draw
            self.dWhh += self.H[t].T @ draw
            self.dbh += draw.sum(0)
            dX[t] = draw @ self.Wxh.T
            dnext = draw @ self.Whh.T
        return dX


# ---- the case
TARGET = VanillaRNN(2, 3)
GRADS = {"self.Wxh": "self.dWxh", "self.Whh": "self.dWhh", "self.bh": "self.dbh"}
inputs = normal((3, 2, 2))
WRONG = [
    Wrong("(dH[t] + dnext)", "dH[t]", "carry"),
    Wrong("self.dWhh += self.H[t].T @ draw", "self.dWhh += self.H[t + 1].T @ draw", "index"),
    Wrong("            self.dbh += draw.sum(0)", "            self.dbh = draw.sum(0)", "accumulate"),
]
