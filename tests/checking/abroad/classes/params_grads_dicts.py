import numpy as np


class TwoLayerNet:
    def __init__(self, n, h, c):
        r = np.random.RandomState(7)
        self.params = {"W1": r.randn(n, h), "b1": np.zeros(h), "W2": r.randn(h, c), "b2": np.zeros(c)}
        self.grads = {}

    def forward(self, x):
        p = self.params
        self.cache = {"x": x}
        self.cache["z"] = x @ p["W1"] + p["b1"]
        self.cache["h"] = np.logaddexp(0, self.cache["z"])
        return self.cache["h"] @ p["W2"] + p["b2"]

    def backward(self, dout):
        p, c = self.params, self.cache
        self.grads["W2"] = c["h"].T @ dout
        self.grads["b2"] = dout.sum(0)
        dz = dout @ p["W2"].T / (1 + np.exp(-c["z"]))
        self.grads["W1"] = c["x"].T @ dz
        self.grads["b1"] = dz.sum(0)
        return dz @ p["W1"].T


# ---- the case
TARGET = TwoLayerNet(3, 4, 2)
GRADS = {f"self.params['{k}']": f"self.grads['{k}']" for k in ("W1", "b1", "W2", "b2")}
inputs = normal((5, 3))
WRONG = [
    Wrong('self.grads["W2"] = c["h"].T @ dout', 'self.grads["W2"] = c["z"].T @ dout', "name"),
    Wrong("/ (1 + np.exp(-c", "/ (1 + np.exp(c", "sign", (r"sign|exp|derivative|should",)),
    Wrong('self.grads["b1"] = dz.sum(0)', 'self.grads["b1"] = dz.sum(0) * 2', "factor extra"),
]
