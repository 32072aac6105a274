import numpy as np


class LSTMCell:
    def __init__(self, W, U, b):
        self.W, self.U, self.b = W, U, b

    def step(self, x, h, c):
        z = x @ self.W + h @ self.U + self.b
        n = h.shape[1]
        self.i, self.f, self.o = (1 / (1 + np.exp(-z[:, k * n:(k + 1) * n])) for k in range(3))
        self.g = np.tanh(z[:, 3 * n:])
        self.x, self.h, self.c = x, h, c
        self.cn = self.f * c + self.i * self.g
        self.tc = np.tanh(self.cn)
        return self.o * self.tc, self.cn

    def back(self, dh, dc):
        dct = dc + dh * self.o * (1 - self.tc**2)
        dz = np.hstack([
            dct * self.g * self.i * (1 - self.i),
            dct * self.c * self.f * (1 - self.f),
            dh * self.tc * self.o * (1 - self.o),
            dct * self.i * (1 - self.g**2),
        ])
        self.dW, self.dU, self.db = self.x.T @ dz, self.h.T @ dz, dz.sum(0)
        return dz @ self.W.T, dz @ self.U.T, dct * self.f


def two_steps(x1, x2, h, c, W, U, b):
    a, z = LSTMCell(W, U, b), LSTMCell(W, U, b)
    h, c = a.step(x1, h, c)
    h, c = z.step(x2, h, c)
    return h, (a, z)


def two_steps_grad(dh, cells):
    a, z = cells
    dx2, dh, dc = z.back(dh, 0.0)
    dx1, dh, dc = a.back(dh, dc)
    return dx1, dx2, dh, dc, a.dW + z.dW, a.dU + z.dU, a.db + z.db


# ---- the case
TARGET = (two_steps, two_steps_grad)
inputs = normal((2, 2), (2, 2), (2, 3), (2, 3), (2, 12), (3, 12), 12)
WRONG = [
    Wrong("dx1, dh, dc = a.back(dh, dc)", "dx1, dh, dc = a.back(dh, 0.0)", "carry"),
    Wrong("dct * self.c * self.f", "dct * self.cn * self.f", "name"),
    Wrong("a.dU + z.dU", "z.dU", "term missing"),
]
