import numpy as np


class Conv1D:
    """Valid cross-correlation; x is (length, c_in), kernel (width, c_in, c_out)."""

    def __init__(self, kernel):
        self.kernel = kernel

    def forward(self, x):
        self.x = x
        k = self.kernel.shape[0]
        n = x.shape[0] - k + 1
        out = np.zeros((n, self.kernel.shape[2]))
        for i in range(n):
            out[i] = np.tensordot(x[i:i + k], self.kernel, axes=([0, 1], [0, 1]))
        return out

    def backward(self, dout):
        k = self.kernel.shape[0]
        self.dkernel = np.zeros_like(self.kernel)
        dx = np.zeros_like(self.x)
        for i, d in enumerate(dout):
            self.dkernel += self.x[i:i + k, :, None] * d
            dx[i:i + k] += self.kernel @ d
        return dx


def run(x, kernel):
    layer = Conv1D(kernel)
    return layer.forward(x), layer


def run_backward(dout, layer):
    dx = layer.backward(dout)
    return dx, layer.dkernel


# ---- the case
TARGET = (run, run_backward)
inputs = normal((6, 2), (3, 2, 4))
WRONG = [
    Wrong("dx[i:i + k] += self.kernel @ d", "dx[i:i + k] = self.kernel @ d", "accumulate"),
    Wrong("dx[i:i + k] += self.kernel @ d", "dx[i:i + k] += self.kernel[::-1] @ d", "order", (r"flip|revers|order|other way|\[::-1\]",)),
    Wrong("self.dkernel += self.x[i:i + k, :, None] * d", "self.dkernel += self.x[i:i + k, :, None] * d / k", "factor extra"),
]
