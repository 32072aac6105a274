# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Losses: a number comes out, in whatever form it is given."""

from __future__ import annotations

import math

import numpy as np

from tests.checking.right_passes.case import Case, normal


def labels(n, c):
    return lambda rng: (rng.standard_normal((n, c)), rng.integers(0, c, n))


def mse(p, t):
    return float(np.mean((p - t) ** 2)), p - t


def mse_back(d, diff):
    g = d * 2 * diff / diff.size
    return g, -g


def mse_of_prediction(p, t):
    return 0.5 * np.sum((p - t) ** 2) / len(p), (p, t)


def mse_of_prediction_back(d, cache):
    p, t = cache
    return d * (p - t) / len(p)


def cross_entropy(scores, y):
    z = scores - np.max(scores, axis=1, keepdims=True)
    p = np.exp(z) / np.sum(np.exp(z), axis=1, keepdims=True)
    n = scores.shape[0]
    loss = -np.sum(np.log(p[np.arange(n), y])) / n
    return loss, (p, y)


def cross_entropy_back(dloss, cache):
    p, y = cache
    n = p.shape[0]
    dx = p.copy()
    dx[np.arange(n), y] -= 1
    dx /= n
    return dx * dloss


def one_hot_cross_entropy(scores, onehot):
    lse = np.log(np.exp(scores).sum(1))
    return (lse - (scores * onehot).sum(1)).mean(), (scores, onehot)


def one_hot_cross_entropy_back(d, cache):
    s, t = cache
    e = np.exp(s)
    return d * (e / e.sum(1, keepdims=True) - t) / len(s)


def label_smoothing(x, y, eps=0.1):
    n, c = x.shape
    logp = x - x.max(1, keepdims=True)
    logp = logp - np.log(np.exp(logp).sum(1, keepdims=True))
    q = np.full((n, c), eps / c)
    q[np.arange(n), y] += 1 - eps
    return -(q * logp).sum() / n, (q, logp)


def label_smoothing_back(d, cache):
    q, logp = cache
    return (np.exp(logp) - q) / len(q) * d


def bce_with_logits(z, t):
    return np.mean(np.maximum(z, 0) - z * t + np.log1p(np.exp(-np.abs(z)))), (z, t)


def bce_with_logits_back(d, cache):
    z, t = cache
    return d * (1 / (1 + np.exp(-z)) - t) / z.size


def bce_of_probabilities(p, t):
    eps = 1e-12
    p = np.clip(p, eps, 1 - eps)
    return -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean(), (p, t)


def bce_of_probabilities_back(d, cache):
    p, t = cache
    return d * (p - t) / (p * (1 - p)) / p.size


def hinge(s, y):
    m = 1 - y * s
    return np.maximum(0, m).mean(), (m, y)


def hinge_back(d, cache):
    m, y = cache
    return -d * y * (m > 0) / m.size


def squared_hinge(s, y):
    m = np.maximum(0, 1 - y * s)
    return (m**2).sum(), (m, y)


def squared_hinge_back(d, cache):
    m, y = cache
    return -2 * d * y * m


def huber(x, t):
    delta = 1.0
    r = x - t
    a = np.abs(r)
    return np.where(a < delta, 0.5 * r * r, delta * (a - 0.5 * delta)).sum(), r


def huber_back(d, r):
    g = np.clip(r, -1.0, 1.0) * d
    return g, -g


def log_cosh(x):
    return np.log(np.cosh(x)).sum(), x


def log_cosh_back(d, x):
    return d * np.tanh(x)


def kl_of_gaussians(mu, logvar):
    return -0.5 * np.sum(1 + logvar - mu**2 - np.exp(logvar)), (mu, logvar)


def kl_of_gaussians_back(d, cache):
    mu, logvar = cache
    return d * mu, 0.5 * d * (np.exp(logvar) - 1)


def gaussian_nll(mu, log_sigma, x):
    z = (x - mu) / np.exp(log_sigma)
    return np.mean(0.5 * z**2 + log_sigma), z, log_sigma


def gaussian_nll_forward(mu, log_sigma, x):
    loss, z, log_sigma = gaussian_nll(mu, log_sigma, x)
    return loss, (z, log_sigma)


def gaussian_nll_forward_back(d, cache):
    z, log_sigma = cache
    n = z.size
    return -d * z / np.exp(log_sigma) / n, d * (1 - z**2) / n


def poisson_nll(log_rate, k):
    return (np.exp(log_rate) - k * log_rate).sum(), (log_rate, k)


def poisson_nll_back(d, cache):
    log_rate, k = cache
    return d * (np.exp(log_rate) - k)


def contrastive(a, b, same):
    diff = a - b
    dist = np.sqrt((diff**2).sum(1))
    far = np.maximum(0, 2.0 - dist)
    return np.sum(np.where(same, dist**2, far**2)), (diff, dist, far, same)


def contrastive_back(d, cache):
    diff, dist, far, same = cache
    g = np.where(same[:, None], 2 * diff, -2 * (far / dist)[:, None] * diff) * d
    return g, -g


def triplet(a, p, n):
    dp, dn = a - p, a - n
    m = (dp**2).sum(1) - (dn**2).sum(1) + 0.5
    return np.maximum(m, 0).sum(), (dp, dn, m)


def triplet_back(d, cache):
    dp, dn, m = cache
    on = (m > 0)[:, None] * d
    return 2 * on * (dp - dn), -2 * on * dp, 2 * on * dn


def info_nce(q, k):
    s = q @ k.T / 0.5
    e = np.exp(s - s.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    return -np.log(np.diag(p)).mean(), (q, k, p)


def info_nce_back(d, cache):
    q, k, p = cache
    ds = (p - np.eye(len(p))) / len(p) / 0.5 * d
    return ds @ k, ds.T @ q


def focal(x, t):
    p = 1 / (1 + np.exp(-x))
    pt = np.where(t == 1, p, 1 - p)
    return -((1 - pt) ** 2 * np.log(pt)).sum(), (t, pt)


def focal_back(d, cache):
    t, pt = cache
    dpt = 2 * (1 - pt) * np.log(pt) - (1 - pt) ** 2 / pt
    sign = np.where(t == 1, 1.0, -1.0)
    return d * dpt * sign * pt * (1 - pt)


def dice(p, t):
    inter, total = (p * t).sum(), p.sum() + t.sum()
    return 1 - 2 * inter / total, (p, t, inter, total)


def dice_back(d, cache):
    p, t, inter, total = cache
    return -d * 2 * (t * total - inter) / total**2


def sequence_loss_with_mask(logits, y, mask):
    n, t, v = logits.shape
    z = logits - logits.max(-1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    picked = p[np.arange(n)[:, None], np.arange(t)[None], y]
    return -(np.log(picked) * mask).sum() / mask.sum(), (p, y, mask)


def sequence_loss_with_mask_back(d, cache):
    p, y, mask = cache
    n, t, v = p.shape
    dx = p.copy()
    dx[np.arange(n)[:, None], np.arange(t)[None], y] -= 1
    return d * dx * mask[..., None] / mask.sum()


def with_weight_decay(w, x, t):
    r = x @ w - t
    return np.dot(r, r) / (2 * len(r)) + 0.01 * np.sum(w * w), (w, x, r)


def with_weight_decay_back(d, cache):
    w, x, r = cache
    return d * (x.T @ r / len(r) + 0.02 * w)


def perplexity_in_a_loop(x, y):
    total, probs = 0.0, []
    for row, label in zip(x, y, strict=True):
        e = np.exp(row - max(row))
        probs.append(e / sum(e))
        total -= math.log(probs[-1][label])
    return total / len(x), (probs, y)


def perplexity_in_a_loop_back(d, cache):
    probs, y = cache
    dx = []
    for p, label in zip(probs, y, strict=True):
        g = np.array(p)
        g[label] -= 1.0
        dx.append(g * d / len(y))
    return np.stack(dx)


def signs(n, *rest):
    return lambda rng: (rng.standard_normal(n), rng.choice((-1, 1), n))


CASES = (
    Case(mse, mse_back, normal((4, 3), (4, 3)), ("d * 2", "d")),
    Case(
        mse_of_prediction,
        mse_of_prediction_back,
        normal((4, 3), (4, 3)),
        ("p - t", "t - p"),
        wrt=("p",),
    ),
    Case(cross_entropy, cross_entropy_back, labels(5, 4), ("dx /= n", "pass")),
    Case(
        one_hot_cross_entropy,
        one_hot_cross_entropy_back,
        lambda rng: (rng.standard_normal((3, 4)), np.eye(4)[rng.integers(0, 4, 3)]),
        ("- t", "+ t"),
        wrt=("scores",),
    ),
    Case(label_smoothing, label_smoothing_back, labels(5, 4), ("- q", "- 2 * q")),
    Case(
        bce_with_logits,
        bce_with_logits_back,
        lambda rng: (rng.standard_normal(9), rng.integers(0, 2, 9)),
        ("np.exp(-z)", "np.exp(z)"),
    ),
    Case(
        bce_of_probabilities,
        bce_of_probabilities_back,
        lambda rng: (rng.uniform(0.1, 0.9, 9), rng.integers(0, 2, 9)),
        (" / p.size", ""),
    ),
    Case(hinge, hinge_back, signs(11), ("-d", "d")),
    Case(squared_hinge, squared_hinge_back, signs(11), ("-2", "-1")),
    Case(huber, huber_back, normal(12, 12), ("-1.0, 1.0", "-1.0, 9.0")),
    Case(log_cosh, log_cosh_back, normal(7), ("np.tanh", "np.sinh")),
    Case(kl_of_gaussians, kl_of_gaussians_back, normal((3, 4), (3, 4)), (" - 1)", ")")),
    Case(
        gaussian_nll_forward,
        gaussian_nll_forward_back,
        normal(6, 6, 6),
        ("1 - z**2", "-(z**2)"),
        wrt=("mu", "log_sigma"),
    ),
    Case(
        poisson_nll,
        poisson_nll_back,
        lambda rng: (rng.standard_normal(6), rng.integers(0, 5, 6)),
        ("- k", "+ k"),
    ),
    Case(
        contrastive,
        contrastive_back,
        lambda rng: (*rng.standard_normal((2, 6, 3)), rng.integers(0, 2, 6).astype(bool)),
        ("-2 *", "2 *"),
    ),
    Case(triplet, triplet_back, normal((6, 3), (6, 3), (6, 3)), ("2 * on * dn", "on * dn")),
    Case(info_nce, info_nce_back, normal((4, 3), (4, 3)), (" / 0.5", "")),
    Case(
        focal,
        focal_back,
        lambda rng: (rng.standard_normal(8), rng.integers(0, 2, 8)),
        (" * sign", ""),
    ),
    Case(
        dice,
        dice_back,
        lambda rng: (rng.uniform(0.1, 0.9, 8), rng.integers(0, 2, 8)),
        ("- inter", "+ inter"),
    ),
    Case(
        sequence_loss_with_mask,
        sequence_loss_with_mask_back,
        lambda rng: (
            rng.standard_normal((2, 4, 5)),
            rng.integers(0, 5, (2, 4)),
            np.array([[1, 1, 1, 0], [1, 1, 0, 0]]),
        ),
        (" * mask[..., None]", ""),
    ),
    Case(
        with_weight_decay,
        with_weight_decay_back,
        normal(3, (6, 3), 6),
        (" + 0.02 * w", ""),
        wrt=("w",),
    ),
    Case(perplexity_in_a_loop, perplexity_in_a_loop_back, labels(4, 3), ("-= 1.0", "-= 0.5")),
)
