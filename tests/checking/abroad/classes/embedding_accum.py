import numpy as np


class Embedding:
    def __init__(self, W):
        self.params = [W]
        self.grads = [np.zeros_like(W)]
        self.idx = None

    def forward(self, idx):
        W, = self.params
        self.idx = idx
        return W[idx]

    def backward(self, dout):
        dW, = self.grads
        dW[...] = 0
        np.add.at(dW, self.idx, dout)
        return None


def embed(W, idx):
    layer = Embedding(W)
    return layer.forward(idx), layer


def embed_back(dout, layer):
    layer.backward(dout)
    return layer.grads[0]


# ---- the case
TARGET = (embed, embed_back)
OPTIONS = {"wrt": ("W",)}
def inputs(rng):
    return rng.standard_normal((7, 3)), np.array([1, 4, 4, 0, 6])
WRONG = [
    Wrong("np.add.at(dW, self.idx, dout)", "dW[self.idx] = dout", "duplicates"),
    Wrong("np.add.at(dW, self.idx, dout)", "dW[self.idx] += dout", "duplicates"),
]
