"""Right passes in varied styles, and wrong lines planted in them, each with the line that is right.

The functions stand alone, so that what is planted is text: `planted` gives a module with it.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.checking.alignment.more import MORE

_numbers = itertools.count()


@dataclass(frozen=True)
class Planted:
    """A wrong line in the place of a right one, which the pass has once."""

    name: str
    right: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.name}: {self.wrong.strip()}"


SOURCES = {
    "rnn": """
import numpy as np


class Rnn:
    def __init__(self, Wx, Wh, b):
        self.Wx, self.Wh, self.b = Wx, Wh, b

    def forward(self, xs):
        h = np.zeros((xs.shape[0], self.Wh.shape[0]))
        self.hs, self.xs = [h], xs
        for t in range(xs.shape[1]):
            h = np.tanh(xs[:, t] @ self.Wx + h @ self.Wh + self.b)
            self.hs.append(h)
        return np.stack(self.hs[1:], axis=1)

    def backward(self, dhs):
        dxs = np.zeros_like(self.xs)
        self.dWx, self.dWh = np.zeros_like(self.Wx), np.zeros_like(self.Wh)
        self.db = np.zeros_like(self.b)
        carried = np.zeros_like(self.hs[0])
        for t in reversed(range(self.xs.shape[1])):
            dh = dhs[:, t] + carried
            da = dh * (1 - self.hs[t + 1] ** 2)
            self.dWx += self.xs[:, t].T @ da
            self.dWh += self.hs[t].T @ da
            self.db += da.sum(0)
            dxs[:, t] = da @ self.Wx.T
            carried = da @ self.Wh.T
        return dxs


def forward(xs, Wx, Wh, b):
    net = Rnn(Wx, Wh, b)
    return net.forward(xs), net


def backward(dy, net):
    dxs = net.backward(dy)
    return dxs, net.dWx, net.dWh, net.db
""",
    "two_heads": """
import numpy as np


def forward(x, W, V):
    cache = {"x": x, "W": W, "V": V}
    cache["h"] = np.maximum(0, x @ W)
    cache["mean"] = cache["h"].mean(axis=1, keepdims=True)
    cache["centred"] = cache["h"] - cache["mean"]
    return (cache["centred"] @ V, cache["h"] ** 2), cache


def backward(grads, cache):
    dscores, dsquares = grads
    dV = cache["centred"].T @ dscores
    dcentred = dscores @ cache["V"].T
    dh = dcentred - dcentred.mean(axis=1, keepdims=True)
    dh = dh + 2 * cache["h"] * dsquares
    dz = dh * (cache["h"] > 0)
    dW = cache["x"].T @ dz
    return dz @ cache["W"].T, dW, dV
""",
    "attention": """
import numpy as np


def forward(q, k, v):
    scale = 1.0 / np.sqrt(q.shape[-1])
    s = np.einsum("bid,bjd->bij", q, k) * scale
    e = np.exp(s - s.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return np.einsum("bij,bjd->bid", p, v), (q, k, v, p, scale)


def backward(do, cache):
    q, k, v, p, scale = cache
    dv = np.einsum("bij,bid->bjd", p, do)
    dp = np.einsum("bid,bjd->bij", do, v)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    ds = ds * scale
    dq = np.einsum("bij,bjd->bid", ds, k)
    dk = np.einsum("bij,bid->bjd", ds, q)
    return dq, dk, dv
""",
    "normalised": """
import numpy as np


def forward(x, gamma, beta):
    mu = x.mean(0)
    centred = x - mu
    std = np.sqrt((centred ** 2).mean(0) + 1e-5)
    hat = centred / std
    return gamma * hat + beta, (hat, std, gamma)


def backward(dout, cache):
    hat, std, gamma = cache
    n = dout.shape[0]
    dbeta = dout.sum(0)
    dgamma = (dout * hat).sum(0)
    g = dout * gamma
    dx = (n * g - g.sum(0) - hat * (g * hat).sum(0)) / (n * std)
    return dx, dgamma, dbeta
""",
    "lookup": """
import numpy as np

INDEX = np.array([2, 0, 2, 1, 2])


def forward(table, w):
    rows = table[INDEX]
    y = np.empty((5, w.shape[1]))
    for i in range(5):
        y[i] = np.sin(rows[i]) @ w
    return y, (table, w, rows)


def backward(dy, cache):
    table, w, rows = cache
    dtable = np.zeros_like(table)
    dw = np.zeros_like(w)
    drows = np.zeros_like(rows)
    for i in range(5):
        dw += np.outer(np.sin(rows[i]), dy[i])
        drows[i] = np.cos(rows[i]) * (dy[i] @ w.T)
    np.add.at(dtable, INDEX, drows)
    return dtable, dw
""",
    "convolved": """
import numpy as np


def forward(x, kernel):
    K = len(kernel)
    padded = np.pad(x, ((0, 0), (K // 2, K // 2)))
    y = np.zeros_like(x)
    for k in range(K):
        y += kernel[k] * padded[:, k : k + x.shape[1]]
    return y, (x, kernel, padded)


def backward(dy, cache):
    x, kernel, padded = cache
    K = len(kernel)
    T = x.shape[1]
    dkernel = np.zeros_like(kernel)
    dpadded = np.zeros_like(padded)
    for k in range(K):
        dkernel[k] = np.sum(dy * padded[:, k : k + T])
        dpadded[:, k : k + T] += kernel[k] * dy
    start = K // 2
    return dpadded[:, start : start + T], dkernel
""",
    "chained": """
import numpy as np


class Dense:
    def __init__(self, w):
        self.w = w

    def forward(self, x):
        self.x = x
        return x @ self.w

    def backward(self, d):
        self.dw = self.x.T @ d
        return d @ self.w.T


class Swish:
    def forward(self, x):
        self.x, self.s = x, 1 / (1 + np.exp(-x))
        return x * self.s

    def backward(self, d):
        return d * (self.s + self.x * self.s * (1 - self.s))


def forward(x, w1, w2):
    layers = [Dense(w1), Swish(), Dense(w2)]
    for layer in layers:
        x = layer.forward(x)
    return x, layers


def backward(d, layers):
    for layer in layers[::-1]:
        d = layer.backward(d)
    return d, layers[0].dw, layers[2].dw
""",
    "loss": """
import numpy as np

TARGETS = np.array([0, 2, 1, 2])


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(x, w):
    p = softmax(x @ w)
    n = len(x)
    loss = -np.log(p[np.arange(n), TARGETS]).mean() + 0.05 * np.sum(w ** 2)
    return loss, dict(x=x, w=w, p=p)


def backward(dloss, cache):
    x, w, p = cache["x"], cache["w"], cache["p"]
    n = len(x)
    dz = p.copy()
    dz[np.arange(n), TARGETS] -= 1
    dz *= dloss / n
    dw = x.T @ dz
    dw += 0.1 * w * dloss
    return dz @ w.T, dw
""",
    **{name: text for name, (text, _, _) in MORE.items()},
}

PLANTED = (
    Planted("rnn", "dh = dhs[:, t] + carried", "dh = dhs[:, t]"),
    Planted("rnn", "(1 - self.hs[t + 1] ** 2)", "(1 - self.hs[t] ** 2)"),
    Planted("rnn", "self.db += da.sum(0)", "self.db = da.sum(0)"),
    Planted("rnn", "carried = da @ self.Wh.T", "carried = da @ self.Wh"),
    Planted("rnn", "self.dWh += self.hs[t].T @ da", "self.dWh += self.hs[t + 1].T @ da"),
    Planted("two_heads", "dh = dh + 2 * cache", "dh = dh + cache"),
    Planted(
        "two_heads",
        "- dcentred.mean(axis=1, keepdims=True)",
        "+ dcentred.mean(axis=1, keepdims=True)",
    ),
    Planted("two_heads", "dcentred.mean(axis=1", "dcentred.mean(axis=0"),
    Planted("two_heads", 'dz = dh * (cache["h"] > 0)', "dz = dh"),
    Planted("attention", "    ds = ds * scale\n", ""),
    Planted("attention", '"bij,bid->bjd", ds, q', '"bij,bjd->bid", ds, q'),
    Planted("attention", "(dp * p).sum(-1, keepdims=True)", "dp.sum(-1, keepdims=True)"),
    Planted(
        "attention",
        'dv = np.einsum("bij,bid->bjd", p, do)',
        'dv = np.einsum("bji,bid->bjd", p, do)',
    ),
    Planted("normalised", "- hat * (g * hat)", "+ hat * (g * hat)"),
    Planted("normalised", "hat * (g * hat).sum(0)", "hat * (dout * hat).sum(0)"),
    Planted("normalised", "n * g - g.sum(0)", "n * g - g.mean(0)"),
    Planted("normalised", "dgamma = (dout * hat).sum(0)", "dgamma = (g * hat).sum(0)"),
    Planted("lookup", "np.add.at(dtable, INDEX, drows)", "dtable[INDEX] += drows"),
    Planted("lookup", "np.cos(rows[i]) * (dy", "np.sin(rows[i]) * (dy"),
    Planted("lookup", "dw += np.outer", "dw = np.outer"),
    Planted("convolved", "dpadded[:, k : k + T] += kernel", "dpadded[:, k : k + T] = kernel"),
    Planted("convolved", "start = K // 2", "start = K // 2 + 1"),
    Planted("convolved", "+= kernel[k] * dy", "+= kernel[K - 1 - k] * dy"),
    Planted("chained", "(self.s + self.x * self.s", "(self.s - self.x * self.s"),
    Planted("chained", "self.x * self.s * (1 - self.s)", "self.x * (1 - self.s)"),
    Planted("chained", "return d @ self.w.T", "return -d @ self.w.T"),
    Planted("loss", "dz *= dloss / n", "dz *= dloss"),
    Planted("loss", "dw += 0.1 * w * dloss", "dw += 0.05 * w * dloss"),
    Planted("loss", "dw += 0.1 * w * dloss", "dw += 0.1 * w"),
    Planted("loss", "TARGETS] -= 1", "TARGETS] += 1"),
    Planted("loss", "dz *= dloss / n", "dz *= dloss / len(w)"),
    Planted("normalised", "- hat * (g * hat).sum(0)", "- (g * hat).sum(0)"),
    Planted("chained", "(1 - self.s)", "self.s"),
    *(Planted(name, *pair) for name, (_, _, pairs) in MORE.items() for pair in pairs),
)


def inputs(name: str, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Inputs of a pass."""
    shapes: dict[str, Any] = {
        "rnn": ((3, 4, 2), (2, 5), (5, 5), (5,)),
        "two_heads": ((4, 3), (3, 5), (5, 2)),
        "attention": ((2, 4, 3), (2, 4, 3), (2, 4, 3)),
        "normalised": ((6, 3), (3,), (3,)),
        "lookup": ((4, 3), (3, 2)),
        "convolved": ((2, 7), (3,)),
        "chained": ((4, 3), (3, 5), (5, 2)),
        "loss": ((4, 3), (3, 3)),
        **{each: shapes for each, (_, shapes, _) in MORE.items()},
    }
    return tuple(rng.standard_normal(shape) for shape in shapes[name])


def source(planted: Planted) -> str:
    """The pass with the wrong line in it."""
    text = SOURCES[planted.name].lstrip()
    assert text.count(planted.right) == 1, planted
    return text.replace(planted.right, planted.wrong)


def module(text: str, folder: Path) -> ModuleType:
    """The module that a text is, from a file of its own."""
    path = folder / f"pass_{next(_numbers)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made
