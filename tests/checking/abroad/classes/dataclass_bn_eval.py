from dataclasses import dataclass, field

import numpy as np


@dataclass
class BatchNorm2d:
    channels: int
    momentum: float = 0.9
    eps: float = 1e-5
    training: bool = True
    gamma: np.ndarray = None
    beta: np.ndarray = None
    running_mean: np.ndarray = None
    running_var: np.ndarray = None
    grads: dict = field(default_factory=dict)

    def __post_init__(self):
        rng = np.random.default_rng(2)
        self.gamma = rng.normal(size=self.channels)
        self.beta = rng.normal(size=self.channels)
        self.running_mean = rng.normal(size=self.channels)
        self.running_var = rng.random(self.channels) + 0.5

    def _c(self, v):
        return v[None, :, None, None]

    def forward(self, x):
        if self.training:
            mu, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.running_mean = self.momentum * self.running_mean + (1 - self.momentum) * mu
            self.running_var = self.momentum * self.running_var + (1 - self.momentum) * var
        else:
            mu, var = self.running_mean, self.running_var
        self.std = np.sqrt(var + self.eps)
        self.xhat = (x - self._c(mu)) / self._c(self.std)
        return self._c(self.gamma) * self.xhat + self._c(self.beta)

    def backward(self, dy):
        self.grads["gamma"] = (dy * self.xhat).sum((0, 2, 3))
        self.grads["beta"] = dy.sum((0, 2, 3))
        dxhat = dy * self._c(self.gamma)
        if not self.training:
            return dxhat / self._c(self.std)
        m = dy.size // self.channels
        mean_d = dxhat.sum((0, 2, 3)) / m
        mean_dx = (dxhat * self.xhat).sum((0, 2, 3)) / m
        return (dxhat - self._c(mean_d) - self.xhat * self._c(mean_dx)) / self._c(self.std)


# ---- the case
TARGET = BatchNorm2d(3, training=False)
GRADS = {"self.gamma": "self.grads['gamma']", "self.beta": "self.grads['beta']"}
inputs = normal((3, 3, 2, 2))
WRONG = [
    Wrong("        if not self.training:\n            return dxhat / self._c(self.std)\n", "", "condition", (r"training|extra|not belong|mean",)),
]
