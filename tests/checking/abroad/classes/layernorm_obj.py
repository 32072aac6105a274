import numpy as np


class LayerNorm:
    def __init__(self, d):
        rng = np.random.RandomState(1)
        self.params = {"g": 1 + 0.3 * rng.randn(d), "b": 0.1 * rng.randn(d)}
        self.grads = {}

    def forward(self, x):
        self.mu = x.mean(axis=-1, keepdims=True)
        self.xc = x - self.mu
        self.var = (self.xc ** 2).mean(axis=-1, keepdims=True)
        self.istd = 1.0 / np.sqrt(self.var + 1e-5)
        self.xhat = self.xc * self.istd
        return self.params["g"] * self.xhat + self.params["b"]

    def backward(self, dout):
        D = dout.shape[-1]
        self.grads["b"] = dout.sum(axis=0)
        self.grads["g"] = (dout * self.xhat).sum(axis=0)
        dxhat = dout * self.params["g"]
        dvar = (dxhat * self.xc).sum(axis=-1, keepdims=True) * -0.5 * self.istd ** 3
        dmu = -(dxhat * self.istd).sum(axis=-1, keepdims=True)
        return dxhat * self.istd + dvar * 2 * self.xc / D + dmu / D


# ---- the case
TARGET = LayerNorm(5)
GRADS = {"self.params['g']": "self.grads['g']", "self.params['b']": "self.grads['b']"}
inputs = normal((4, 5))
WRONG = [
    Wrong("* -0.5 * self.istd ** 3", "* -0.5 * self.istd", "exponent"),
    Wrong("+ dmu / D", "+ dmu", "factor missing"),
    Wrong("dxhat = dout * self.params[\"g\"]", "dxhat = dout", "factor missing"),
    (Wrong("* -0.5 * self.istd ** 3", "* 0.5 * self.istd ** 3", "sign"), Wrong('self.grads["g"] = (dout * self.xhat).sum(axis=0)', 'self.grads["g"] = (dout * self.xc).sum(axis=0)', "name")),
]
