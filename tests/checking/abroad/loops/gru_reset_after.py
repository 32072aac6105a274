import numpy as np


class GRU:
    """reset_after variant, as cuDNN computes it."""

    def __init__(self, n_in, n_hid):
        rng = np.random.RandomState(1)
        self.W = rng.randn(3 * n_hid, n_in) * 0.5
        self.R = rng.randn(3 * n_hid, n_hid) * 0.5
        self.bw = rng.randn(3 * n_hid) * 0.1
        self.br = rng.randn(3 * n_hid) * 0.1
        self.n = n_hid

    def forward(self, xs):
        n = self.n
        h = np.zeros((xs.shape[1], n))
        self.saved, out = [], []
        for x in xs:
            u = x @ self.W.T + self.bw
            v = h @ self.R.T + self.br
            z = 1 / (1 + np.exp(-(u[:, :n] + v[:, :n])))
            r = 1 / (1 + np.exp(-(u[:, n:2 * n] + v[:, n:2 * n])))
            hh = np.tanh(u[:, 2 * n:] + r * v[:, 2 * n:])
            self.saved.append((x, h, z, r, hh, v[:, 2 * n:]))
            h = z * h + (1 - z) * hh
            out.append(h)
        return np.stack(out)

    def backward(self, dout):
        self.dW, self.dR = np.zeros_like(self.W), np.zeros_like(self.R)
        self.dbw, self.dbr = np.zeros_like(self.bw), np.zeros_like(self.br)
        dh = np.zeros_like(dout[0])
        dxs = []
        for t in range(len(dout) - 1, -1, -1):
            x, h, z, r, hh, vh = self.saved[t]
            dh = dh + dout[t]
            dz = dh * (h - hh) * z * (1 - z)
            dhh = dh * (1 - z) * (1 - hh ** 2)
            dr = dhh * vh * r * (1 - r)
            du = np.concatenate([dz, dr, dhh], axis=1)
            dv = np.concatenate([dz, dr, dhh * r], axis=1)
            self.dW += du.T @ x
            self.dR += dv.T @ h
            self.dbw += du.sum(0)
            self.dbr += dv.sum(0)
            dxs.append(du @ self.W)
            dh = dh * z + dv @ self.R
        return np.stack(dxs[::-1])


# ---- the case
TARGET = GRU(3, 2)
GRADS = {"self.W": "self.dW", "self.R": "self.dR", "self.bw": "self.dbw", "self.br": "self.dbr"}
inputs = normal((4, 2, 3))
WRONG = [
    Wrong("dv = np.concatenate([dz, dr, dhh * r], axis=1)", "dv = np.concatenate([dz, dr, dhh], axis=1)", "factor missing"),
    Wrong("return np.stack(dxs[::-1])", "return np.stack(dxs)", "order"),
    Wrong("dh = dh * z + dv @ self.R", "dh = dv @ self.R", "term missing"),
    Wrong("self.dbr += dv.sum(0)", "self.dbr += du.sum(0)", "name"),
]
