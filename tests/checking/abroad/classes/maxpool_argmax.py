import numpy as np


class MaxPool:
    def __init__(self, size):
        self.size = size

    def forward(self, x):
        n, c, h, w = x.shape
        s = self.size
        self.shape = x.shape
        blocks = x.reshape(n, c, h // s, s, w // s, s).transpose(0, 1, 2, 4, 3, 5)
        self.blocks_shape = blocks.shape
        flat = blocks.reshape(-1, s * s)
        self.arg = flat.argmax(axis=1)
        return flat.max(axis=1).reshape(n, c, h // s, w // s)

    def backward(self, dout):
        flat = np.zeros((dout.size, self.size * self.size))
        flat[np.arange(dout.size), self.arg] = dout.ravel()
        blocks = flat.reshape(self.blocks_shape)
        return blocks.transpose(0, 1, 2, 4, 3, 5).reshape(self.shape)


# ---- the case
TARGET = MaxPool(2)
inputs = normal((2, 2, 4, 4))
WRONG = [
    Wrong("blocks.transpose(0, 1, 2, 4, 3, 5).reshape", "blocks.transpose(0, 1, 2, 3, 4, 5).reshape", "transpose"),
    Wrong("self.arg] = dout.ravel()", "self.arg] = 1", "factor missing", (r"dout|factor|missing|cotangent",)),
]
