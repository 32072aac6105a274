"""Nineteen of fifty-one that were written by the names of papers; at first all but one was right.

A signed logarithm was not, which is smooth at 0 though neither of its factors is.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_softmax, logsumexp, softmax

CASES = {}


def case(**given):
    def add(forward):
        CASES[forward.__name__] = forward, given
        return forward

    return add


@case(
    r=("T", "H", "N"),
    w=("T", "H", "N"),
    k=("T", "H", "N"),
    v=("T", "H", "N"),
    a=("T", "H", "N"),
)
def rwkv7(r, w, k, v, a):
    T, H, N = r.shape
    w = np.exp(-0.606531 * expit(w))
    a = expit(a)
    kk = k / np.maximum(np.linalg.norm(k, axis=-1, keepdims=True), 1e-12)
    S = np.zeros((H, N, N))
    y = np.zeros((T, H, N))
    for t in range(T):
        S = (
            S * w[t, :, None, :]
            + (S @ -kk[t, :, :, None]) @ (kk[t] * a[t])[:, None, :]
            + v[t, :, :, None] @ k[t, :, None, :]
        )
        y[t] = (S @ r[t, :, :, None])[..., 0]
    return y.reshape(T, -1)


@dataclass
class RWKV6Config:
    head_size: int = 2
    mix: float = 0.5
    eps: float = 64e-5


RWKV6 = RWKV6Config()


@case(
    x=("T", "2*H"),
    Wr=("2*H", "2*H"),
    Wk=("2*H", "2*H"),
    Wv=("2*H", "2*H"),
    decay=("2*H",),
    u=("H", 2),
    ln_w=("2*H",),
    ln_b=("2*H",),
)
def rwkv6(x, Wr, Wk, Wv, decay, u, ln_w, ln_b, cfg=RWKV6):
    T, C = x.shape
    H, S = C // cfg.head_size, cfg.head_size
    xx = np.vstack([np.zeros((1, C)), x[:-1]]) - x
    xm = x + xx * cfg.mix
    r, k, v = ((xm @ W).reshape(T, H, S) for W in (Wr, Wk, Wv))
    w = np.exp(-np.exp(decay)).reshape(H, S, 1)
    state = np.zeros((H, S, S))
    out = []
    for t in range(T):
        at = k[t][:, :, None] * v[t][:, None, :]
        out.append(np.einsum("hi,hij->hj", r[t], u[..., None] * at + state))
        state = at + w * state
    out = np.stack(out)
    mu = out.mean(-1, keepdims=True)
    var = out.var(-1, keepdims=True)
    out = ((out - mu) / np.sqrt(var + cfg.eps)).reshape(T, C)
    return out * ln_w + ln_b


@case(q=("4*C", "D"), k=("4*C", "D"), v=("4*C", "E"), gk=("4*C", "D"))
def gla_chunk(q, k, v, gk, chunk_size=2, scale=None):
    T, K = q.shape
    scale = K**-0.5 if scale is None else scale
    g = -np.logaddexp(0, -gk) / 16
    S = np.zeros((K, v.shape[-1]))
    o = np.zeros_like(v)
    for i in range(0, T, chunk_size):
        qi, ki, vi, gi = (
            q[i : i + chunk_size] * scale,
            k[i : i + chunk_size],
            v[i : i + chunk_size],
            g[i : i + chunk_size],
        )
        G = gi.cumsum(0)
        Gn = G[-1]
        qg = qi * np.exp(G)
        kg = ki * np.exp(-G)
        A = np.tril(qg @ kg.T)
        o[i : i + chunk_size] = qg @ S + A @ vi
        S = np.exp(Gn)[:, None] * S + (ki * np.exp(Gn - G)).T @ vi
    return o


@case(q=("4*C", "D"), k=("4*C", "D"), v=("4*C", "D"), beta=("4*C",))
def deltanet_wy(q, k, v, beta, chunk=4):
    L, d = q.shape
    k = k / np.sqrt((k * k).sum(-1, keepdims=True) + 1e-6)
    b = expit(beta)[:, None]
    v = v * b
    kb = k * b
    S = np.zeros((d, d))
    outs = []
    for c in range(L // chunk):
        sl = slice(c * chunk, (c + 1) * chunk)
        qc, kc, vc, kbc = q[sl], k[sl], v[sl], kb[sl]
        T = np.linalg.inv(np.eye(chunk) + np.tril(kbc @ kc.T, -1))
        W = T @ kbc
        U = T @ vc
        u_i = U - W @ S
        outs.append(qc @ S + np.tril(qc @ kc.T) @ u_i)
        S = S + kc.T @ u_i
    return np.concatenate(outs, 0), S


@case(
    x=("T", "I"),
    W=("I + P", "4*H"),
    b=("4*H",),
    w_i=("H",),
    w_f=("H",),
    w_o=("H",),
    Wp=("H", "P"),
)
def lstm_peephole(x, W, b, w_i, w_f, w_o, Wp, forget_bias=1.0, cell_clip=None):
    def sigmoid(z):
        return 1.0 / (1.0 + np.exp(-z))

    H = w_i.shape[0]
    c = np.zeros(H, dtype=x.dtype)
    m = np.zeros(Wp.shape[1], dtype=x.dtype)
    outputs = []
    for t in range(x.shape[0]):
        gates = np.concatenate([x[t], m]) @ W + b
        i, j, f, o = np.split(gates, 4)
        c = sigmoid(f + forget_bias + w_f * c) * c + sigmoid(i + w_i * c) * np.tanh(j)
        if cell_clip is not None:
            c = np.clip(c, -cell_clip, cell_clip)
        m = (sigmoid(o + w_o * c) * np.tanh(c)) @ Wp
        outputs.append(m)
    return {"outputs": np.stack(outputs), "state": [c, m]}


@case(memory=("N", "M"), k=("M",), beta=(), g=(), s=(3,), gamma=(), w_prev=("N",))
def ntm_address(memory, k, beta, g, s, gamma, w_prev):
    beta = np.log1p(np.exp(beta))
    g = 1 / (1 + np.exp(-g))
    s = np.exp(s) / np.exp(s).sum()
    gamma = 1 + np.log1p(np.exp(gamma))
    w_prev = softmax(w_prev)

    def similarity(k, beta, memory):
        sim = memory @ k / (np.linalg.norm(memory, axis=-1) * np.linalg.norm(k) + 1e-16)
        e = np.exp(beta * sim)
        return e / e.sum()

    def convolve(w, s):
        t = np.concatenate([w[-1:], w, w[:1]])
        return np.array([np.dot(t[i : i + 3], s) for i in range(len(w))])

    wc = similarity(k, beta, memory)
    wg = g * wc + (1 - g) * w_prev
    w = convolve(wg, s) ** gamma
    return w / (w.sum() + 1e-16)


@case(x=("T", "C", "H", "W"), w=("4*D", "C+D", 3, 3), b=("4*D",))
def conv_lstm(x, w, b):
    T, _, H, W = x.shape
    D = w.shape[0] // 4
    h = np.zeros((D, H, W))
    c = np.zeros((D, H, W))

    def conv(inp):
        padded = np.pad(inp, ((0, 0), (1, 1), (1, 1)))
        out = np.zeros((w.shape[0], H, W))
        for di in range(3):
            for dj in range(3):
                window = padded[:, di : di + H, dj : dj + W]
                out += np.tensordot(w[:, :, di, dj], window, axes=([1], [0]))
        return out + b[:, None, None]

    for t in range(T):
        i, f, o, g = conv(np.concatenate((x[t], h), axis=0)).reshape(4, D, H, W)
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
    return h, c


def h_transform(x, eps=1e-3):
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + eps * x


@case(rewards=("T",), values=("T+1",))
def td_lambda(rewards, values, lambda_=0.95, discount=0.997, eps=1e-3):
    T = rewards.shape[0]
    g = values[-1]
    returns = np.empty_like(rewards)
    for i in reversed(range(T)):
        g = rewards[i] + discount * ((1 - lambda_) * values[i + 1] + lambda_ * g)
        returns[i] = g
    td = h_transform(returns, eps) - h_transform(values[:-1], eps)
    return np.mean(np.where(np.abs(td) < 1, 0.5 * td**2, np.abs(td) - 0.5)), returns


@case(logits=("B", "2*S+1"))
def support_to_scalar(logits, eps=0.001):
    size = (logits.shape[1] - 1) // 2
    z = logits - logits.max(axis=1, keepdims=True)
    p = np.exp(z) / np.sum(np.exp(z), axis=1, keepdims=True)
    support = np.arange(-size, size + 1)
    x = np.sum(support * p, axis=1, keepdims=True)
    root = np.sqrt(1 + 4 * eps * (np.abs(x) + 1 + eps))
    return np.sign(x) * (((root - 1) / (2 * eps)) ** 2 - 1)


@case(pred=("N", "P", 2), target=("N", "P", 2))
def wing_losses(pred, target, w=10.0, epsilon=2.0, omega=14.0, theta=0.5, eps2=1.0, alpha=2.1):
    delta = np.abs(target - pred)
    C = w - w * math.log(1 + w / epsilon)
    wing = np.where(delta < w, w * np.log(1 + delta / epsilon), delta - C).mean()
    t = expit(target)
    ratio = theta / eps2
    A = omega * (1 / (1 + ratio ** (alpha - t))) * (alpha - t) * ratio ** (alpha - t - 1) / eps2
    Ca = theta * A - omega * np.log(1 + ratio ** (alpha - t))
    below = omega * np.log(1 + (delta / eps2) ** (alpha - t))
    return wing + np.where(delta < theta, below, A * delta - Ca).mean()


@case(theta=("B", "N"), target=("B", "M"))
def quantile_huber(theta, target, kappa=1.0):
    N = theta.shape[1]
    tau = (2 * np.arange(N) + 1) / (2.0 * N)
    u = target[:, None, :] - theta[..., None]
    huber = np.where(np.abs(u) <= kappa, 0.5 * u**2, kappa * (np.abs(u) - 0.5 * kappa))
    loss = np.abs(tau[None, :, None] - (u < 0).astype(theta.dtype)) * huber / kappa
    return loss.mean(axis=-1).sum(axis=-1).mean()


def _gaussian(size, sigma):
    x = np.arange(size) - size // 2
    g = np.exp(-(x**2) / (2 * sigma**2))
    return g / g.sum()


@case(x=("H", "W"), y=("H", "W"))
def ssim_gauss(x, y, win_size=3, sigma=1.5, L=1.0, K1=0.01, K2=0.03):
    k = _gaussian(win_size, sigma)
    w = np.outer(k, k)

    def filt(im):
        v = np.lib.stride_tricks.sliding_window_view(im, (win_size, win_size))
        return np.einsum("ijkl,kl->ij", v, w)

    C1, C2 = (K1 * L) ** 2, (K2 * L) ** 2
    mu1, mu2 = filt(x), filt(y)
    s11 = filt(x * x) - mu1**2
    s22 = filt(y * y) - mu2**2
    s12 = filt(x * y) - mu1 * mu2
    cs = (2 * s12 + C2) / (s11 + s22 + C2)
    ssim_map = ((2 * mu1 * mu2 + C1) / (mu1**2 + mu2**2 + C1)) * cs
    return 1 - ssim_map.mean(), cs.mean()


@case(x=("N", "2*C", "H", "W"), v=("2*C",), gamma=("2*C",), beta=("2*C",))
def evonorm_s0(x, v, gamma, beta, groups=2, eps=1e-5):
    N, C, H, W = x.shape
    def g(p):
        return p.reshape(1, -1, 1, 1)

    grouped = (N, groups, C // groups, H, W)
    var = x.reshape(grouped).var(axis=(2, 3, 4), keepdims=True)
    std = np.broadcast_to(np.sqrt(var + eps), grouped).reshape(N, C, H, W)
    return x * expit(g(v) * x) / std * g(gamma) + g(beta)


@case(
    mean=("G",),
    log_scale=("G",),
    opacity=("G",),
    color=("G", 3),
    depth=("G",),
    background=(3,),
    pixels=("P",),
)
def splat_1d(mean, log_scale, opacity, color, depth, background, pixels):
    order = np.argsort(depth)
    mean, inv = mean[order], np.exp(-log_scale)[order]
    op, color = expit(opacity)[order], color[order]
    out = np.zeros((len(pixels), 3))
    T = np.ones(len(pixels))
    for i in range(len(mean)):
        power = -0.5 * ((pixels - mean[i]) * inv[i]) ** 2
        alpha = np.minimum(0.99, op[i] * np.exp(power))
        alpha = np.where(alpha < 1 / 255.0, 0.0, alpha)
        out += (T * alpha)[:, None] * color[i]
        T *= 1 - alpha
    return out + T[:, None] * background, T


@case(x=("B", "D"), We=("D", "2*Z"), Wd=("Z", "D"), eps=("K", "B", "Z"))
def iwae(x, We, Wd, eps, k_is_iwae=True):
    log2pi = np.log(2 * np.pi)
    mu, logvar = np.split(x @ We, 2, axis=-1)
    std = np.exp(0.5 * logvar)
    z = mu + std * eps
    logits = np.tanh(z) @ Wd
    t = expit(x)
    bce = np.maximum(logits, 0) - logits * t + np.log1p(np.exp(-np.abs(logits)))
    log_px = -bce.sum(-1)
    log_pz = -0.5 * (log2pi + z**2).sum(-1)
    log_qz = -0.5 * (log2pi + logvar + (z - mu) ** 2 / np.exp(logvar)).sum(-1)
    log_w = log_px + log_pz - log_qz
    if not k_is_iwae:
        return -log_w.mean()
    return -(logsumexp(log_w, axis=0) - np.log(log_w.shape[0])).mean()


def _yarn_inv_freq(dim, base, factor, orig_len, beta_fast=32, beta_slow=1):
    def find_dim(n_rot):
        return dim * math.log(orig_len / (n_rot * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(find_dim(beta_fast)), 0)
    high = min(math.ceil(find_dim(beta_slow)), dim - 1)
    pos = base ** (np.arange(0, dim, 2) / dim)
    extra, inter = 1.0 / pos, 1.0 / (factor * pos)
    ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1)
    return inter * ramp + extra * (1 - ramp)


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return np.concatenate((-x2, x1), axis=-1)


@case(q=("H", "T", 8), k=("H", "T", 8), v=("H", "T", 8), q_scale=(8,), k_scale=(8,))
def yarn_attention(q, k, v, q_scale, k_scale, base=10000.0, factor=4.0, orig_len=64):
    inv_freq = _yarn_inv_freq(q.shape[-1], base, factor, orig_len)
    mscale = 0.1 * math.log(factor) + 1.0
    emb = np.concatenate([np.outer(np.arange(q.shape[1]), inv_freq)] * 2, axis=-1)
    cos, sin = np.cos(emb) * mscale, np.sin(emb) * mscale

    def norm(x, w):
        return w * x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-6)

    q, k = norm(q, q_scale), norm(k, k_scale)
    q = q * cos + rotate_half(q) * sin
    k = k * cos + rotate_half(k) * sin
    att = q @ np.moveaxis(k, -1, -2) / np.sqrt(q.shape[-1])
    i, j = np.indices(att.shape[-2:])
    att = np.where(j > i, -1e9, att)
    return softmax(att, axis=-1) @ v


@case(X=("N", "D"), y=("N",), log_ls=("D",), log_sf=())
def gp_laplace(X, y, log_ls, log_sf, rounds=3, jitter=1e-6):
    t = np.tanh(y) * 0.5 + 0.5
    Z = X / np.exp(log_ls)
    sq = np.sum(Z**2, 1)
    K = np.exp(2 * log_sf) * np.exp(-0.5 * (sq[:, None] + sq[None, :] - 2 * Z @ Z.T))
    K = K + jitter * np.eye(len(X))
    f = np.zeros(len(X))
    for _ in range(rounds):
        pi = expit(f)
        W = pi * (1 - pi)
        sW = np.sqrt(W)
        B = np.eye(len(X)) + sW[:, None] * K * sW
        L = np.linalg.cholesky(B)
        b = W * f + t - pi
        a = b - sW * np.linalg.solve(L.T, np.linalg.solve(L, sW * (K @ b)))
        f = K @ a
    return -0.5 * a @ f + np.sum(t * f - np.logaddexp(0, f)) - np.log(np.diag(L)).sum()


@case(h=("B", "K + 2*K*D"), y=("B", "D"))
def mixture_density(h, y):
    D = y.shape[-1]
    K = h.shape[1] // (1 + 2 * D)
    pi, mu = h[:, :K], h[:, K : K + K * D].reshape(-1, K, D)
    sigma = np.exp(h[:, K + K * D :]).reshape(-1, K, D)
    log_prob = -0.5 * np.square((y[:, np.newaxis] - mu) / sigma) - np.log(sigma)
    log_prob = log_prob - 0.5 * np.log(2 * np.pi)
    return -logsumexp(log_softmax(pi, axis=1) + log_prob.sum(2), axis=1).mean()


@dataclass(frozen=True)
class OdeConfig:
    times: tuple = (0.0, 0.2, 0.5, 1.0)
    method: str = "heun"


@case(z=("N", "D"), W1=("D+1", "H"), b1=("H",), W2=("H", "D"))
def ffjord(z, W1, b1, W2, cfg=OdeConfig()):
    def f(t, z):
        inp = np.concatenate([z, np.full((z.shape[0], 1), t)], axis=1)
        a = np.tanh(inp @ W1 + b1)
        div = np.einsum("nh,hd,dh->n", 1 - a**2, W2, W1[:-1])
        return a @ W2, -div

    logdet = np.zeros(z.shape[0])
    for t0, t1 in zip(cfg.times[:-1], cfg.times[1:], strict=True):
        h = t1 - t0
        k1, d1 = f(t0, z)
        if cfg.method == "euler":
            z, logdet = z + h * k1, logdet + h * d1
            continue
        k2, d2 = f(t1, z + h * k1)
        z = z + h / 2 * (k1 + k2)
        logdet = logdet + h / 2 * (d1 + d2)
    logp = -0.5 * (z**2).sum(1) - 0.5 * z.shape[1] * math.log(2 * math.pi)
    return logp - logdet, z
