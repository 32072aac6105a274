"""Forty forwards of losses, layers, recurrences and kernels."""

import math
import numpy as np
from scipy import special

CASES = {}


def case(**given):
    def add(forward):
        CASES[forward.__name__] = forward, given
        return forward

    return add


@case(x=("B", "T", "D"), w1=("D", "F"), w3=("D", "F"), w2=("F", "D"))
def swiglu(x, w1, w3, w2):
    a = x @ w1
    return (a / (1 + np.exp(-a)) * (x @ w3)) @ w2


@case(x=("N", "C", "H", "W"), gamma=("C",), beta=("C",))
def group_norm(x, gamma, beta, groups=1, eps=1e-5):
    N, C, H, W = x.shape
    g = x.reshape(N, groups, -1)
    mu = g.mean(axis=2, keepdims=True)
    var = g.var(axis=2, keepdims=True)
    xh = ((g - mu) / np.sqrt(var + eps)).reshape(N, C, H, W)
    return xh * gamma[None, :, None, None] + beta[None, :, None, None]


@case(q=("B", "T", "D"), k=("B", "T", "D"), v=("B", "T", "D"))
def causal_attention(q, k, v):
    d = q.shape[-1]
    s = np.einsum("btd,bsd->bts", q, k) / math.sqrt(d)
    mask = np.triu(np.ones((q.shape[1], q.shape[1]), dtype=bool), 1)
    s = np.where(mask, -np.inf, s)
    s = s - s.max(-1, keepdims=True)
    p = np.exp(s)
    p /= p.sum(-1, keepdims=True)
    return p @ v


@case(x=("B", "T", "H", 6))
def rotary(x, base=10000.0):
    D = x.shape[-1]
    half = D // 2
    freqs = base ** (-np.arange(half) / half)
    ang = np.arange(x.shape[1])[:, None] * freqs
    cos, sin = np.cos(ang)[None, :, None, :], np.sin(ang)[None, :, None, :]
    x1, x2 = x[..., :half], x[..., half : 2 * half]
    return np.concatenate([x1 * cos - x2 * sin, x1 * sin + x2 * cos], axis=-1)


@case(x=("N", "D"), w=("C", "D"), y=("N", int))
def arcface(x, w, y, s=8.0, m=0.2):
    xn = x / np.linalg.norm(x, axis=1, keepdims=True)
    wn = w / np.linalg.norm(w, axis=1, keepdims=True)
    cos = xn @ wn.T
    theta = np.arccos(np.clip(cos, -0.999, 0.999))
    rows = np.arange(len(x))
    logits = cos.copy()
    logits[rows, y] = np.cos(theta[rows, y] + m)
    logits = s * logits
    return (special.logsumexp(logits, axis=1) - logits[rows, y]).mean()


@case(a=("N", "D"), b=("N", "D"))
def info_nce(a, b, tau=0.5):
    a = a / np.sqrt((a**2).sum(1, keepdims=True))
    b = b / np.sqrt((b**2).sum(1, keepdims=True))
    s = a @ b.T / tau
    l = s - special.logsumexp(s, axis=1, keepdims=True)
    r = s - special.logsumexp(s, axis=0, keepdims=True)
    return -(np.trace(l) + np.trace(r)) / (2 * s.shape[0])


@case(x=("T", "N", "D"), wx=("D", "4*H"), wh=("H", "4*H"), b=("4*H",))
def lstm(x, wx, wh, b):
    H = wh.shape[0]
    h = np.zeros((x.shape[1], H))
    c = np.zeros_like(h)
    out = []
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        i, f, g, o = np.split(z, 4, axis=1)
        sig = lambda u: 1 / (1 + np.exp(-u))
        c = sig(f) * c + sig(i) * np.tanh(g)
        h = sig(o) * np.tanh(c)
        out.append(h)
    return np.stack(out)


@case(u=("L", "D"), delta=("L", "D"), A=("D", "S"), B=("L", "S"), C=("L", "S"), D=("D",))
def selective_scan(u, delta, A, B, C, D):
    dA = np.exp(delta[:, :, None] * A)
    dBu = delta[:, :, None] * B[:, None, :] * u[:, :, None]
    x = np.zeros((u.shape[1], A.shape[1]))
    ys = []
    for i in range(u.shape[0]):
        x = dA[i] * x + dBu[i]
        ys.append((x * C[i]).sum(-1))
    return np.stack(ys) + u * D


@case(q=("T", "D"), k=("T", "D"), v=("T", "E"), beta=("T",))
def delta_rule(q, k, v, beta):
    S = np.zeros((k.shape[1], v.shape[1]))
    o = np.zeros((q.shape[0], v.shape[1]))
    for t in range(q.shape[0]):
        old = k[t] @ S
        S = S + np.outer(k[t], beta[t] * (v[t] - old))
        o[t] = q[t] @ S
    return o


@case(e=("T", "K"), trans=("K", "K"), start=("K",))
def crf_logz(e, trans, start):
    alpha = start + e[0]
    for t in range(1, e.shape[0]):
        alpha = special.logsumexp(alpha[:, None] + trans, axis=0) + e[t]
    return special.logsumexp(alpha)


@case(x=("N", "C", "H", "W"), w=("O", "C", 3, 3), b=("O",))
def conv_windows(x, w, b):
    xp = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    win = np.lib.stride_tricks.sliding_window_view(xp, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", win, w) + b[:, None, None]


@case(x=("N", "C", 8, 6))
def max_pool(x):
    N, C, H, W = x.shape
    return x.reshape(N, C, H // 2, 2, W // 2, 2).max(axis=(3, 5))


@case(pred=("N", 4), target=("N", 4))
def giou_like(pred, target):
    x1 = np.maximum(pred[:, 0], target[:, 0])
    y1 = np.maximum(pred[:, 1], target[:, 1])
    x2 = np.minimum(pred[:, 2], target[:, 2])
    y2 = np.minimum(pred[:, 3], target[:, 3])
    inter = np.clip(x2 - x1, 0, None) * np.clip(y2 - y1, 0, None)
    area = lambda b: (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    union = area(pred) + area(target) - inter
    return 1 - inter / (np.abs(union) + 1.0)


@case(x=("N", "K"), mu=("K",), L=("K", "K"))
def gaussian_nll(x, mu, L):
    tri = np.tril(L, -1) + np.diag(np.exp(np.diag(L)))
    z = np.linalg.solve(tri, (x - mu).T)
    return (
        0.5 * (z**2).sum() / x.shape[0]
        + np.log(np.diag(tri)).sum()
        + 0.5 * x.shape[1] * np.log(2 * np.pi)
    )


@case(mu=("N", "Z"), logvar=("N", "Z"))
def kl_normal(mu, logvar):
    return -0.5 * np.sum(1 + logvar - mu**2 - np.exp(logvar), axis=1).mean()


@case(x=("N", "D"), c=("K", "D"))
def soft_kmeans(x, c, beta=2.0):
    d = ((x[:, None, :] - c[None]) ** 2).sum(-1)
    r = special.softmax(-beta * d, axis=1)
    new = r.T @ x / r.sum(0)[:, None]
    return new


@case(x=("B", "T", "D"), w=("D", "E"), b=("E",), experts=("E", "D", "F"))
def soft_moe(x, w, b, experts):
    g = x @ w + b
    g = np.exp(g - g.max(-1, keepdims=True))
    g = g / g.sum(-1, keepdims=True)
    y = np.einsum("btd,edf->btef", x, experts)
    return np.einsum("bte,btef->btf", g, np.tanh(y))


@case(logits=("N", "C"), y=("N", int))
def focal_loss(logits, y, gamma=2.0):
    z = logits - logits.max(1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(1, keepdims=True))
    lp = np.take_along_axis(logp, y[:, None], axis=1)[:, 0]
    return (-((1 - np.exp(lp)) ** gamma) * lp).mean()


@case(a=("D", "R"), b=("R", "O"), w=("D", "O"), x=("N", "D"), m=("O",))
def dora(x, w, a, b, m, alpha=16, r=4):
    wp = w + a @ b * (alpha / r)
    norm = np.linalg.norm(wp, axis=0)
    return x @ (wp / norm) * m


@case(x=("N", "D"))
def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@case(x=("N", "D"))
def mish_erf(x):
    return x * np.tanh(np.log1p(np.exp(x))) + x * 0.5 * (1 + special.erf(x / np.sqrt(2.0)))


@case(y0=("D",), w=("D", "D"))
def rk4(y0, w, steps=4, dt=0.1):
    f = lambda y: np.tanh(w @ y)
    y = y0
    for _ in range(steps):
        k1 = f(y)
        k2 = f(y + dt / 2 * k1)
        k3 = f(y + dt / 2 * k2)
        k4 = f(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


@case(q=("T", "D"), k=("2*S", "D"), v=("2*S", "E"))
def flash_blocks(q, k, v, block=2):
    scale = q.shape[1] ** -0.5
    m = np.full(q.shape[0], -np.inf)
    l = np.zeros(q.shape[0])
    o = np.zeros((q.shape[0], v.shape[1]))
    for j in range(0, k.shape[0], block):
        s = q @ k[j : j + block].T * scale
        mn = np.maximum(m, s.max(1))
        p = np.exp(s - mn[:, None])
        c = np.exp(m - mn)
        l = c * l + p.sum(1)
        o = c[:, None] * o + p @ v[j : j + block]
        m = mn
    return o / l[:, None]


@case(x=("2*N", "D"), w=("V", "D"), y=("2*N", int))
def chunked_ce(x, w, y, chunk=2):
    total = 0.0
    for i in range(0, x.shape[0], chunk):
        z = x[i : i + chunk] @ w.T
        lse = np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1)
        total = total + (lse - z[np.arange(z.shape[0]), y[i : i + chunk]]).sum()
    return total / x.shape[0]


@case(x=("N", "D"), p={"w1": ("D", "H"), "b1": ("H",), "w2": ("H", "O"), "b2": ("O",)})
def mlp_dict(x, p):
    h = np.maximum(x @ p["w1"] + p["b1"], 0)
    return h @ p["w2"] + p["b2"]


@case(x=("N", "L", "D"), q=("D",))
def attentive_pool(x, q):
    s = x @ q
    a = special.softmax(s, axis=-1)
    return np.sum(a[..., None] * x, axis=1)


@case(r=("N",), v=("N+1",))
def gae(r, v, gamma=0.9, lam=0.8):
    adv = np.zeros_like(r)
    last = 0.0
    for t in reversed(range(len(r))):
        delta = r[t] + gamma * v[t + 1] - v[t]
        last = delta + gamma * lam * last
        adv[t] = last
    return adv


@case(lp=("N",), old=("N",), adv=("N",))
def ppo(lp, old, adv, eps=0.2):
    ratio = np.exp(lp - old)
    return -np.minimum(ratio * adv, np.clip(ratio, 1 - eps, 1 + eps) * adv).mean()


@case(pw=("N",), pl=("N",), rw=("N",), rl=("N",))
def dpo(pw, pl, rw, rl, beta=0.1):
    h = beta * ((pw - rw) - (pl - rl))
    return np.mean(np.logaddexp(0, -h))


@case(s=("N", "N"))
def sinkhorn(s, iters=3, tau=1.0):
    f = s / tau
    for _ in range(iters):
        f = f - special.logsumexp(f, axis=1, keepdims=True)
        f = f - special.logsumexp(f, axis=0, keepdims=True)
    return np.exp(f)


@case(x=("N", "D"), w=("D", "D"))
def newton_inverse(x, w):
    a = w.T @ w + np.eye(w.shape[0])
    return x @ np.linalg.inv(a)


@case(x=("B", "C", "T"), w=("C", "K"))
def depthwise_causal(x, w):
    K = w.shape[1]
    xp = np.pad(x, ((0, 0), (0, 0), (K - 1, 0)))
    y = np.zeros_like(x)
    for k in range(K):
        y += xp[:, :, k : k + x.shape[2]] * w[:, k][None, :, None]
    return y


@case(table=("V", "D"), ids=("N", "T", int), w=("D", "C"))
def cbow(table, ids, w):
    return np.log1p(np.exp(table[ids].mean(axis=1) @ w))


@case(x=("N", "T", "D"), dec=("D",))
def retention_ema(x, dec):
    a = 1 / (1 + np.exp(-dec))
    h = x[:, 0]
    ys = [h]
    for t in range(1, x.shape[1]):
        h = a * h + (1 - a) * x[:, t]
        ys.append(h)
    return np.stack(ys, axis=1)


@case(x=("N", "D"), g=("D",))
def rmsnorm_residual(x, g, eps=1e-6):
    r = x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps) * g
    return x + r


@case(x=("N", "D"), adj=("N", "N"), w=("D", "F"))
def gcn(x, adj, w):
    a = np.abs(adj) + np.eye(adj.shape[0])
    d = a.sum(1) ** -0.5
    return np.maximum((d[:, None] * a * d) @ x @ w, 0)


@case(h=("N", "F"), a1=("F",), a2=("F",), adj=("N", "N", bool))
def gat(h, a1, a2, adj):
    e = (h @ a1)[:, None] + (h @ a2)[None, :]
    e = np.where(e > 0, e, 0.2 * e)
    e = np.where(adj, e, -1e9)
    p = np.exp(e - e.max(1, keepdims=True))
    return (p / p.sum(1, keepdims=True)) @ h


@case(sig=("N", "R"), rgb=("N", "R", 3), dist=("R",))
def nerf_render(sig, rgb, dist):
    alpha = 1 - np.exp(-np.log1p(np.exp(sig)) * np.abs(dist))
    T = np.cumprod(1 - alpha + 1e-10, axis=-1)
    T = np.concatenate([np.ones_like(T[:, :1]), T[:, :-1]], axis=-1)
    wts = alpha * T
    return (wts[..., None] * rgb).sum(1)


@case(x=("N", "C", "H", "W"))
def ssim_like(x):
    m = x.mean((2, 3))
    v = x.var((2, 3), ddof=1)
    return (2 * m + 0.01) / (m**2 + v + 0.01)


@case(q=("B", "H", "T", "D"), k=("B", "H", "S", "D"), v=("B", "H", "S", "D"), slopes=("H",))
def alibi(q, k, v, slopes):
    T, S = q.shape[2], k.shape[2]
    bias = -np.abs(np.arange(T)[:, None] - np.arange(S)[None, :])
    s = q @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5 + slopes[:, None, None] * bias
    s -= s.max(axis=-1, keepdims=True)
    w = np.exp(s)
    return (w / w.sum(axis=-1, keepdims=True)) @ v
