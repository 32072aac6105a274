"""Twenty more, written after the trace, the primitives and the emitter; at first 19 were derived."""

import math

import numpy as np
import scipy.special
from numpy.lib.stride_tricks import sliding_window_view

CASES = {}


def case(**given):
    def add(forward):
        CASES[forward.__name__] = forward, given
        return forward

    return add


@case(x=("B", "T", "D"), wr=("D", "D"), wk=("D", "D"), wv=("D", "D"), mu=("D",))
def rwkv_channel_mix(x, wr, wk, wv, mu):
    prev = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)
    xk = x * mu + prev * (1 - mu)
    k = np.square(np.maximum(xk @ wk, 0))
    return scipy.special.expit(x @ wr) * (k @ wv)


@case(q=("T", "D"), k=("T", "D"), v=("T", "E"), g=("T",))
def gated_retention_chunk(q, k, v, g):
    logd = np.cumsum(-np.logaddexp(0, -g))
    decay = np.exp(logd[:, None] - logd[None, :])
    mask = np.tril(np.ones((len(q), len(q))))
    return (q @ k.T * decay * mask) @ v


@case(x=("N", "C", "H", "W"), w1=("C", "R"), w2=("R", "C"))
def squeeze_excite(x, w1, w2):
    s = x.mean(axis=(2, 3))
    s = np.maximum(s @ w1, 0) @ w2
    s = 1.0 / (1.0 + np.exp(-s))
    return x * s[:, :, None, None]


@case(anchor=("N", "D"), positive=("N", "D"), negative=("N", "D"))
def triplet(anchor, positive, negative, margin=0.3):
    dp = np.sqrt(((anchor - positive) ** 2).sum(-1) + 1e-8)
    dn = np.sqrt(((anchor - negative) ** 2).sum(-1) + 1e-8)
    return np.maximum(dp - dn + margin, 0.0).mean()


@case(mu=("N",), log_sigma=("N",), y=("N",))
def mixture_of_logistics_cdf(mu, log_sigma, y, bins=8):
    inv = np.exp(-log_sigma)
    plus = scipy.special.expit(inv * (y - mu + 1 / bins))
    minus = scipy.special.expit(inv * (y - mu - 1 / bins))
    return -np.log(np.maximum(plus - minus, 1e-12)).sum()


@case(x=("N", "T", "D"), w=("D", "A"), u=("A",))
def han_attention(x, w, u):
    scores = np.tanh(np.tensordot(x, w, axes=1)) @ u
    weights = scipy.special.softmax(scores, axis=1)
    return np.einsum("nt,ntd->nd", weights, x)


@case(x=("N", "D"), centers=("K", "D"), log_gamma=("K",))
def rbf_layer(x, centers, log_gamma):
    diff = x[:, np.newaxis] - centers[np.newaxis]
    r2 = np.einsum("nkd,nkd->nk", diff, diff)
    return np.exp(-np.exp(log_gamma) * r2)


@case(theta=("P",), data=("N", 2))
def logistic_growth(theta, data):
    a, b, c = theta[0], theta[1], theta[2]
    t, obs = data.T
    pred = a / (1 + np.exp(-(b * t + c)))
    return 0.5 * np.mean((obs - pred) ** 2)


@case(emissions=("T", "S"), transition=("S", "S"), start=("S",))
def viterbi_soft(emissions, transition, start, temperature=1.0):
    v = start + emissions[0]
    for e_t in emissions[1:]:
        v = (
            temperature * scipy.special.logsumexp((v[:, None] + transition) / temperature, axis=0)
            + e_t
        )
    return temperature * scipy.special.logsumexp(v / temperature)


@case(x=("N", "L", "C"), depth=("K", "C"), point=("C", "O"))
def separable_conv1d(x, depth, point):
    windows = sliding_window_view(x, depth.shape[0], axis=1)
    mixed = np.einsum("nlck,kc->nlc", windows, depth)
    return np.maximum(mixed, 0.01 * mixed) @ point


@case(x=("N", "D"), w=("D", "D"), b=("D",))
def planar_flow(x, w, b, steps=3):
    logdet = np.zeros(len(x))
    for _ in range(steps):
        a = np.tanh(x @ w[0] + b[0])
        h = (1 - a**2)[:, None] * w[0]
        logdet = logdet + np.log(np.abs(1 + h @ w[1]) + 1e-9)
        x = x + w[1] * a[:, None]
    return x, logdet


@case(pos=("N", 3), charge=("N",))
def coulomb(pos, charge, softening=0.1):
    i, j = np.triu_indices(len(pos), k=1)
    r = np.sqrt(np.sum((pos[i] - pos[j]) ** 2, axis=-1) + softening**2)
    return np.sum(charge[i] * charge[j] / r)


@case(logits=("B", "C"), teacher=("B", "C"))
def distillation(logits, teacher, T=2.0):
    p = scipy.special.softmax(teacher / T, axis=-1)
    log_q = scipy.special.log_softmax(logits / T, axis=-1)
    return T * T * np.sum(p * (np.log(p) - log_q)) / logits.shape[0]


@case(x=("N", "D"), W=("D", "H"), V=("H", "D"))
def denoise_score(x, W, V, sigma=0.5):
    def score(z):
        return np.tanh(z @ W) @ V - z

    noisy = x * 1.1
    return sigma**2 * np.sum((score(noisy) + (noisy - x) / sigma**2) ** 2, axis=1).mean()


@case(h=("N", "D"), src=("M", int), dst=("M", int), w=("D", "D"))
def message_passing(h, src, dst, w):
    src, dst = src % h.shape[0], dst % h.shape[0]
    out = np.zeros((h.shape[0], w.shape[1]))
    np.add.at(out, dst, np.tanh(h[src] @ w))
    return h + out


@case(x=("N",), knots=(5,), coef=("N", 5))
def kan_spline(x, knots, coef):
    grid = np.sort(knots)
    basis = np.maximum(0, 1 - np.abs(x[:, None] - grid) / (1.0 + np.abs(grid).max()))
    return (coef * basis).sum(axis=-1) + x / (1 + np.exp(-x))


@case(imgs=("N", "P", "D"), W=("D", "E"), cls=("E",), pos=("P+1", "E"))
def patch_embed(imgs, W, cls, pos):
    tokens = imgs @ W
    n = tokens.shape[0]
    cls_tokens = np.broadcast_to(cls, (n, 1, cls.shape[0]))
    z = np.concatenate((cls_tokens, tokens), axis=1) + pos
    mean, std = z.mean(-1, keepdims=True), z.std(-1, keepdims=True)
    return (z - mean) / (std + 1e-6)


@case(x=("T", "D"), W=("D", "D"), lam=())
def leaky_reservoir(x, W, lam):
    s = np.zeros(W.shape[0])
    states = np.empty((len(x), W.shape[0]))
    for t in range(len(x)):
        s = (1 - lam) * s + lam * np.tanh(W @ s + x[t])
        states[t] = s
    return states


@case(params=[("D", "H"), ("H",), ("H", "O")], x=("N", "D"))
def net_of_list(params, x):
    w1, b1, w2 = params
    h = x @ w1 + b1
    h = h * scipy.special.ndtr(h)
    return h @ w2


@case(A=("N", "N"), b=("N",))
def jacobi_solver(A, b, iterations=4):
    A = A + 2 * len(b) * np.eye(len(b))
    D = np.diag(A)
    R = A - np.diagflat(D)
    x = np.zeros_like(b)
    for _ in range(iterations):
        x = (b - R @ x) / D
    return x
