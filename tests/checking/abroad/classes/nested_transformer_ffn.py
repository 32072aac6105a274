import numpy as np


class Module:
    def __init__(self):
        self.cache = {}
        self.params = {}
        self.grads = {}


class Linear(Module):
    def __init__(self, i, o, rng):
        super().__init__()
        self.params["W"] = rng.normal(0, 0.5, (i, o))
        self.params["b"] = rng.normal(0, 0.1, o)

    def __call__(self, x):
        self.cache["x"] = x
        return x @ self.params["W"] + self.params["b"]

    def backward(self, g):
        x = self.cache["x"]
        self.grads["W"] = np.einsum("bti,bto->io", x, g)
        self.grads["b"] = g.sum(axis=(0, 1))
        return g @ self.params["W"].T


class RMSNorm(Module):
    def __init__(self, d, rng):
        super().__init__()
        self.params["g"] = rng.normal(1, 0.1, d)

    def __call__(self, x):
        ms = np.mean(x * x, axis=-1, keepdims=True)
        r = 1 / np.sqrt(ms + 1e-6)
        self.cache.update(x=x, r=r)
        return x * r * self.params["g"]

    def backward(self, g):
        x, r = self.cache["x"], self.cache["r"]
        self.grads["g"] = (g * x * r).sum(axis=(0, 1))
        gg = g * self.params["g"]
        return r * gg - r ** 3 * x * np.mean(gg * x, axis=-1, keepdims=True)


class SwiGLUBlock(Module):
    def __init__(self, d, h):
        super().__init__()
        rng = np.random.default_rng(0)
        self.norm = RMSNorm(d, rng)
        self.up, self.gate, self.down = Linear(d, h, rng), Linear(d, h, rng), Linear(h, d, rng)

    def forward(self, x):
        n = self.norm(x)
        u, a = self.up(n), self.gate(n)
        s = 1 / (1 + np.exp(-a))
        self.cache.update(u=u, a=a, s=s)
        return x + self.down(u * a * s)

    def backward(self, dy):
        u, a, s = (self.cache[k] for k in "uas")
        dm = self.down.backward(dy)
        du = dm * a * s
        da = dm * u * (s + a * s * (1 - s))
        dn = self.up.backward(du) + self.gate.backward(da)
        return dy + self.norm.backward(dn)


# ---- the case
TARGET = SwiGLUBlock(4, 3)
GRADS = {"self.norm.params['g']": "self.norm.grads['g']"} | {f"self.{m}.params['{p}']": f"self.{m}.grads['{p}']" for m in ("up", "gate", "down") for p in "Wb"}
inputs = normal((2, 3, 4))
WRONG = [
    Wrong("return dy + self.norm.backward(dn)", "return self.norm.backward(dn)", "term missing"),
    Wrong("da = dm * u * (s + a * s * (1 - s))", "da = dm * u * s * (1 - s)", "term missing"),
    Wrong("r ** 3 * x * np.mean(gg * x", "r * x * np.mean(gg * x", "exponent"),
    Wrong("self.up.backward(du) + self.gate.backward(da)", "self.up.backward(da) + self.gate.backward(du)", "swapped"),
    Wrong("self.grads[\"b\"] = g.sum(axis=(0, 1))", "self.grads[\"b\"] = g.sum(axis=0).mean(axis=0)", "sum for mean"),
]
