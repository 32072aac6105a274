"""Forwards as people write them, with the axes of their arrays: cases for `hg.derive`."""

import numpy as np

ND = ("N", "D")
NC = ("N", "C")
PROBABILITIES = {"sum(q, -1)": 1}


def softmax(x):
    m = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - m)
    y = e / np.sum(e, axis=-1, keepdims=True)
    return y


def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    var = (centred * centred).mean(-1, keepdims=True)
    inv_std = 1 / np.sqrt(var + eps)
    x_hat = centred * inv_std
    y = gamma * x_hat + beta
    return y


def rms_norm(x, gamma, eps=1e-6):
    ms = (x**2).mean(-1, keepdims=True)
    r = 1 / np.sqrt(ms + eps)
    return x * r * gamma


def attention(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    a = e / e.sum(-1, keepdims=True)
    return a @ v


def dense_tanh(x, w, b):
    return np.tanh(x @ w.T + b)


def relu_net(x, w, b, v, c):
    h = np.maximum(x @ w + b, 0)
    return h @ v + c


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def batch_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(0)
    xc = x - mu
    var = (xc**2).mean(0)
    return gamma * xc / np.sqrt(var + eps) + beta


def cross_entropy(x, q):
    m = x.max(-1, keepdims=True)
    e = np.exp(x - m)
    p = e / e.sum(-1, keepdims=True)
    return -(q * np.log(p)).sum() / x.shape[0]


def group_norm(x, gamma, beta, groups=2, eps=1e-5):
    N, C, S = x.shape
    g = x.reshape(N, groups, C // groups, S)
    mu = g.mean(axis=(2, 3), keepdims=True)
    c = g - mu
    var = (c * c).mean(axis=(2, 3), keepdims=True)
    r = 1 / np.sqrt(var + eps)
    x_hat = (c * r).reshape(N, C, S)
    return gamma[:, None] * x_hat + beta[:, None]


def instance_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(axis=(2, 3), keepdims=True)
    var = x.var(axis=(2, 3), keepdims=True)
    x_hat = (x - mu) / np.sqrt(var + eps)
    return gamma[None, :, None, None] * x_hat + beta[None, :, None, None]


def swiglu(x, w, v):
    a = x @ w
    b = x @ v
    s = 1 / (1 + np.exp(-a))
    return a * s * b


def focal(x, q):
    p = np.exp(x - x.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    pt = (q * p).sum(-1)
    return (-((1 - pt) ** 2) * np.log(pt)).mean()


def info_nce(a, b, t=0.1):
    logits = a @ b.T / t
    m = logits.max(1, keepdims=True)
    lse = m[:, 0] + np.log(np.exp(logits - m).sum(1))
    return (lse - np.sum(a * b, 1) / t).mean()


def cosine_embedding(a, b):
    na = np.sqrt((a * a).sum(-1))
    nb = np.linalg.norm(b, axis=-1)
    return ((a * b).sum(-1)) / (na * nb)


def label_smoothing(x, q, alpha=0.1):
    C = x.shape[1]
    t = (1 - alpha) * q + alpha / C
    z = x - x.max(1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(1, keepdims=True))
    return -(t * logp).sum(1).mean()


def student_t(x, mu, log_s, nu=4.0):
    s = np.exp(log_s)
    z = (x - mu) / s
    return (0.5 * (nu + 1) * np.log1p(z * z / nu) + log_s).sum()


def gaussian_mixture(x, mu, logits):
    d = x[:, None] - mu[None, :]
    w = logits - np.log(np.exp(logits).sum())
    s = w - 0.5 * d * d
    m = s.max(1, keepdims=True)
    return -(m[:, 0] + np.log(np.exp(s - m).sum(1))).sum()


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def lse_pool(x, r=3.0):
    m = (r * x).max(1, keepdims=True)
    return (m[:, 0] + np.log(np.exp(r * x - m).mean(1))) / r


def l2(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def linear_ce(x, w, q):
    z = x @ w.T
    z = z - z.max(1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(1, keepdims=True))
    return -(q * logp).sum() / x.shape[0]


def gated_linear_attention(q, k, v, g):
    s = np.einsum("nd,nm->ndm", k, v)
    return np.einsum("nd,ndm->nm", q, s) * g


def mixture_of_experts(x, wg, h):
    z = x @ wg
    e = np.exp(z - z.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    return np.einsum("ne,ned->nd", p, h)


def gelu_tanh(x):
    u = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(u))


def lstm_cell(a, c):
    H = c.shape[1]
    i = 1 / (1 + np.exp(-a[:, :H]))
    f = 1 / (1 + np.exp(-a[:, H : 2 * H]))
    g = np.tanh(a[:, 2 * H : 3 * H])
    o = 1 / (1 + np.exp(-a[:, 3 * H :]))
    cn = f * c + i * g
    return o * np.tanh(cn), cn


def mish(x):
    return x * np.tanh(np.log1p(np.exp(x)))


def huber(x, y):
    d = x - y
    a = np.abs(d)
    return np.where(a < 1, 0.5 * d * d, a - 0.5).mean()


def causal_attention(q, k, v, mask):
    s = np.where(mask, q @ k.T, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    a = e / e.sum(-1, keepdims=True)
    return a @ v


def batched_attention(q, k, v):
    s = np.matmul(q, np.swapaxes(k, -1, -2)) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    a = e / e.sum(-1, keepdims=True)
    return np.matmul(a, v)


#: Each forward with its arguments for `hg.derive`.
CASES = [
    (softmax, {"x": ND}),
    (layer_norm, {"x": ND, "gamma": ("D",), "beta": ("D",)}),
    (rms_norm, {"x": ND, "gamma": ("D",)}),
    (attention, {"q": ND, "k": ("S", "D"), "v": ("S", "E")}),
    (batched_attention, {"q": ("N", "T", "D"), "k": ("N", "S", "D"), "v": ("N", "S", "E")}),
    (causal_attention, {"q": ND, "k": ("S", "D"), "v": ("S", "E"), "mask": ("N", "S", bool)}),
    (dense_tanh, {"x": ND, "w": ("H", "D"), "b": ("H",)}),
    (relu_net, {"x": ND, "w": ("D", "H"), "b": ("H",), "v": ("H", "C"), "c": ("C",)}),
    (sigmoid, {"x": ND}),
    (batch_norm, {"x": ND, "gamma": ("D",), "beta": ("D",)}),
    (cross_entropy, {"x": NC, "q": NC, "wrt": ["x"], "assume": PROBABILITIES}),
    (group_norm, {"x": ("N", "G*K", "S"), "gamma": ("G*K",), "beta": ("G*K",), "groups": "G"}),
    (instance_norm, {"x": ("N", "C", "H", "W"), "gamma": ("C",), "beta": ("C",)}),
    (swiglu, {"x": ND, "w": ("D", "H"), "v": ("D", "H")}),
    (focal, {"x": NC, "q": NC, "wrt": ["x"], "assume": PROBABILITIES}),
    (info_nce, {"a": ND, "b": ND}),
    (cosine_embedding, {"a": ND, "b": ND}),
    (label_smoothing, {"x": NC, "q": NC, "wrt": ["x"], "assume": PROBABILITIES}),
    (student_t, {"x": ND, "mu": ("D",), "log_s": ("D",)}),
    (gaussian_mixture, {"x": ("N",), "mu": ("K",), "logits": ("K",)}),
    (softplus, {"x": ND}),
    (lse_pool, {"x": ND}),
    (l2, {"x": ND}),
    (linear_ce, {"x": ND, "w": ("C", "D"), "q": NC, "wrt": ["x", "w"], "assume": PROBABILITIES}),
    (gated_linear_attention, {"q": ND, "k": ND, "v": ("N", "M"), "g": ("N", "M")}),
    (mixture_of_experts, {"x": ND, "wg": ("D", "E"), "h": ("N", "E", "M")}),
    (gelu_tanh, {"x": ND}),
    (lstm_cell, {"a": ("N", "4*H"), "c": ("N", "H")}),
    (mish, {"x": ND}),
    (huber, {"x": ND, "y": ND}),
]


def rnn(x, h0, w, u, b):
    h = h0
    hs = []
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u + b)
        hs.append(h)
    return np.stack(hs, axis=1)


def rnn_last(x, w, u):
    a = x @ w
    h = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(a[:, t] + h @ u)
    return (h * h).sum()


def _gate(z):
    return 1 / (1 + np.exp(-z))


def lstm(x, h0, c0, w, u, b):
    h, c = h0, c0
    H = h0.shape[1]
    hs = []
    for t in range(x.shape[1]):
        a = x[:, t] @ w.T + h @ u.T + b
        i = _gate(a[:, :H])
        f = _gate(a[:, H : 2 * H])
        g = np.tanh(a[:, 2 * H : 3 * H])
        o = _gate(a[:, 3 * H :])
        c = f * c + i * g
        h = o * np.tanh(c)
        hs.append(h)
    return np.stack(hs, axis=1)


def gru(x, h0, w, u, b):
    h = h0
    H = h0.shape[1]
    hs = []
    for t in range(x.shape[1]):
        a = x[:, t] @ w + b
        m = h @ u
        r = _gate(a[:, :H] + m[:, :H])
        z = _gate(a[:, H : 2 * H] + m[:, H : 2 * H])
        n = np.tanh(a[:, 2 * H :] + r * m[:, 2 * H :])
        h = (1 - z) * n + z * h
        hs.append(h)
    return np.stack(hs, axis=1)


#: Forwards with a loop over time.
LOOPS = [
    (rnn, {"x": ("N", "T", "D"), "h0": ("N", "H"), "w": ("D", "H"), "u": ("H", "H"), "b": ("H",)}),
    (rnn_last, {"x": ("N", "T", "D"), "w": ("D", "H"), "u": ("H", "H")}),
    (
        lstm,
        {
            "x": ("N", "T", "D"),
            "h0": ("N", "H"),
            "c0": ("N", "H"),
            "w": ("4*H", "D"),
            "u": ("4*H", "H"),
            "b": ("4*H",),
        },
    ),
    (
        gru,
        {
            "x": ("N", "T", "D"),
            "h0": ("N", "H"),
            "w": ("D", "3*H"),
            "u": ("H", "3*H"),
            "b": ("3*H",),
        },
    ),
]
