"""Twenty-two of sixty-four that were written by the names of papers; at first 20 were derived.

A spline read an array that each round of a loop makes shorter by one, and places on a diagonal
came from an array.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, softmax

CASES = {}


def case(**given):
    def add(forward):
        CASES[forward.__name__] = forward, given
        return forward

    return add


@case(
    u=("B", "H", "L"),
    log_dt=("H",),
    log_A_real=("H", "N"),
    A_imag=("H", "N"),
    C=("H", "N", 2),
    D=("H",),
)
def s4d(u, log_dt, log_A_real, A_imag, C, D):
    L = u.shape[-1]
    dt = np.exp(log_dt)
    re = -np.exp(log_A_real) * dt[:, None]
    im = A_imag * dt[:, None]
    pos = np.arange(L)
    mag = np.exp(re[..., None] * pos)
    ang = im[..., None] * pos
    K = 2 * np.einsum("hn,hnl->hl", C[..., 0], mag * np.cos(ang)) - 2 * np.einsum(
        "hn,hnl->hl", C[..., 1], mag * np.sin(ang)
    )
    k_f = np.fft.rfft(K, n=2 * L)
    u_f = np.fft.rfft(u, n=2 * L)
    y = np.fft.irfft(u_f * k_f, n=2 * L)[..., :L]
    return y + u * D[:, None]


@case(q=("S", "D"), k=("S", "D"), v=("S", "D"), igate_preact=("S", 1), fgate_preact=("S", 1))
def mlstm_parallel(q, k, v, igate_preact, fgate_preact, *, eps: float = 1e-6):
    S, DH = q.shape
    log_f = -np.log1p(np.exp(-fgate_preact))
    log_f_cumsum = np.concatenate(
        [np.zeros((1, 1), dtype=q.dtype), np.cumsum(log_f, axis=0)], axis=0
    )
    rep = np.tile(log_f_cumsum, (1, S + 1))
    mat = rep - rep.T
    ltr = np.tril(np.ones((S, S), dtype=bool))
    log_fg = np.where(ltr, mat[1:, 1:], -np.inf)
    log_D = log_fg + igate_preact.T
    max_log_D = np.max(log_D, axis=-1, keepdims=True)
    Dm = np.exp(log_D - max_log_D)
    qk = q @ (k.T / math.sqrt(DH))
    C = qk * Dm
    normalizer = np.maximum(np.abs(C.sum(-1, keepdims=True)), np.exp(-max_log_D))
    return (C / (normalizer + eps)) @ v


@case(x=("T", "4*D"), R=("D", "4*D"))
def slstm(x, R):
    T = x.shape[0]
    D = x.shape[1] // 4
    h = np.zeros(D)
    c = np.zeros(D)
    n = np.ones(D)
    m = np.zeros(D)
    ys = np.empty((T, D))
    for t in range(T):
        z, i, f, o = np.split(x[t] + h @ R, 4)
        logf = -np.logaddexp(0.0, -f)
        m_new = np.maximum(logf + m, i)
        ip = np.exp(i - m_new)
        fp = np.exp(logf + m - m_new)
        c = fp * c + ip * np.tanh(z)
        n = fp * n + ip
        h = expit(o) * c / n
        m = m_new
        ys[t] = h
    return ys


@case(q=("3*C", "D"), k=("3*C", "D"), v=("3*C", "E"))
def retnet_chunkwise(q, k, v, gamma=0.9, chunks=3):
    T, d = q.shape
    B = T // chunks
    idx = np.arange(B)
    mask = np.where(
        idx[:, None] >= idx[None, :], gamma ** (idx[:, None] - idx[None, :]).astype(float), 0.0
    )
    R = np.zeros((d, v.shape[1]))
    outs = []
    for c in range(chunks):
        qc, kc, vc = (a.reshape(chunks, B, -1)[c] for a in (q, k, v))
        inner = (qc @ kc.T * mask) @ vc
        cross = (qc @ R) * (gamma ** (idx + 1.0))[:, None]
        R = gamma**B * R + (kc * (gamma ** (B - 1.0 - idx))[:, None]).T @ vc
        outs.append(inner + cross)
    return np.concatenate(outs) / np.sqrt(d)


@case(x=("N", "I"), grid=("I", "G+4"), coef=("O", "I", "G"), scale=("O", "I"))
def kan_de_boor(x, grid, coef, scale, spline_order=3):
    x_ = x[..., None]
    bases = ((x_ >= grid[:, :-1]) & (x_ < grid[:, 1:])).astype(x.dtype)
    for k in range(1, spline_order + 1):
        bases = (
            (x_ - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)]) * bases[:, :, :-1]
        ) + ((grid[:, k + 1 :] - x_) / (grid[:, k + 1 :] - grid[:, 1:(-k)]) * bases[:, :, 1:])
    base = x * expit(x)
    return base @ scale.T + np.einsum("nig,oig->no", bases, coef)


@case(x=("N", "D"), y=("N",), B=("D", "M"))
def rff_ridge(x, y, B, sigma=1.0, lam=0.1):
    proj = 2 * np.pi * (x / sigma) @ B
    phi = np.hstack([np.cos(proj), np.sin(proj)]) / np.sqrt(B.shape[1])
    A = phi.T @ phi
    A[np.diag_indices_from(A)] += lam
    beta = np.linalg.solve(A, phi.T @ y)
    r = y - phi @ beta
    return 0.5 * r @ r + 0.5 * lam * beta @ beta


def lovasz_grad(gt_sorted):
    p = len(gt_sorted)
    gts = gt_sorted.sum()
    intersection = gts - gt_sorted.cumsum(0)
    union = gts + (1 - gt_sorted).cumsum(0)
    jaccard = 1.0 - intersection / union
    if p > 1:
        jaccard[1:p] = jaccard[1:p] - jaccard[0:-1]
    return jaccard


@case(logits=("P",), labels=("P", bool))
def lovasz_hinge(logits, labels):
    signs = 2.0 * labels - 1.0
    errors = 1.0 - logits * signs
    perm = np.argsort(errors)[::-1]
    errors_sorted = errors[perm]
    gt_sorted = labels[perm].astype(float)
    grad = lovasz_grad(gt_sorted)
    return np.dot(np.maximum(errors_sorted, 0), grad)


@case(z=("T", "M"), F=("D", "D"), H=("M", "D"))
def rts_smoother(z, F, H, q=0.3, r=0.2):
    d = F.shape[0]
    Q = q * np.eye(d)
    R = r * np.eye(H.shape[0])
    x = np.zeros(d)
    P = np.eye(d)
    xs, Ps, xp, Pp = [], [], [], []
    for t in range(len(z)):
        x = F @ x
        P = F @ P @ F.T + Q
        xp.append(x)
        Pp.append(P)
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ (z[t] - H @ x)
        P = (np.eye(d) - K @ H) @ P
        xs.append(x)
        Ps.append(P)
    sm = [xs[-1]]
    for t in reversed(range(len(z) - 1)):
        G = Ps[t] @ F.T @ np.linalg.inv(Pp[t + 1])
        sm.insert(0, xs[t] + G @ (sm[0] - xp[t + 1]))
    return np.stack(sm)


@case(z=("N", "D"), Q=("D", "M"), R1=("M", "M"), R2=("M", "M"), b=("M",))
def sylvester_flow(z, Q, R1, R2, b):
    Q, _ = np.linalg.qr(Q)
    R1 = np.triu(R1)
    R2 = np.triu(R2)
    a = np.tanh(z @ Q @ R2.T + b)
    z_new = z + a @ R1.T @ Q.T
    diag = 1 + (1 - a**2) * np.diag(R1) * np.diag(R2)
    return z_new, np.log(np.abs(diag)).sum(-1)


@case(x=("N", "D"), src=("E", int), dst=("E", int), Wl=("D", "H"), Wr=("D", "H"), a=("H",))
def gatv2(x, src, dst, Wl, Wr, a, slope=0.2):
    n = x.shape[0]
    hl, hr = x @ Wl, x @ Wr
    e = hl[src] + hr[dst]
    e = np.where(e > 0, e, slope * e) @ a
    m = np.full(n, -np.inf)
    np.maximum.at(m, dst, e)
    w = np.exp(e - m[dst])
    denom = np.zeros(n)
    np.add.at(denom, dst, w)
    alpha = w / denom[dst]
    out = np.zeros_like(hl)
    np.add.at(out, dst, alpha[:, None] * hl[src])
    return out


@case(img=("C", "H", "W"), theta=(2, 3))
def spatial_transformer(img, theta):
    C, H, W = img.shape
    ys, xs = np.meshgrid(np.linspace(-1, 1, H), np.linspace(-1, 1, W), indexing="ij")
    grid = np.stack([xs.ravel(), ys.ravel(), np.ones(H * W)])
    tx, ty = theta @ grid
    px = (tx + 1) * (W - 1) / 2
    py = (ty + 1) * (H - 1) / 2
    x0 = np.floor(px).astype(int)
    y0 = np.floor(py).astype(int)
    wx, wy = px - x0, py - y0

    def at(yy, xx):
        ok = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
        return img[:, np.clip(yy, 0, H - 1), np.clip(xx, 0, W - 1)] * ok

    out = (
        at(y0, x0) * (1 - wx) * (1 - wy)
        + at(y0, x0 + 1) * wx * (1 - wy)
        + at(y0 + 1, x0) * (1 - wx) * wy
        + at(y0 + 1, x0 + 1) * wx * wy
    )
    return out.reshape(C, H, W)


def _relative_position_bucket(rel, num_buckets=8, max_distance=16):
    num_buckets //= 2
    ret = (rel > 0).astype(int) * num_buckets
    n = np.abs(rel)
    max_exact = num_buckets // 2
    large = max_exact + (
        np.log(np.maximum(n, 1) / max_exact)
        / math.log(max_distance / max_exact)
        * (num_buckets - max_exact)
    ).astype(int)
    large = np.minimum(large, num_buckets - 1)
    return ret + np.where(n < max_exact, n, large)


@case(q=("B", "H", "T", "D"), k=("B", "H", "T", "D"), v=("B", "H", "T", "D"), rel_bias=(8, "H"))
def t5_attention(q, k, v, rel_bias):
    T = q.shape[2]
    rel = np.arange(T)[None, :] - np.arange(T)[:, None]
    bias = rel_bias[_relative_position_bucket(rel)].transpose(2, 0, 1)[None]
    p = softmax(q @ k.swapaxes(-1, -2) + bias, axis=-1)
    return np.einsum("bhts,bhsd->bthd", p, v).reshape(q.shape[0], T, -1)


@case(q=("B", "T", "2*G", "D"), k=("B", "T", "G", "D"), v=("B", "T", "G", "D"))
def gqa_window(q, k, v, *, window=3):
    n_rep = q.shape[2] // k.shape[2]
    k = np.repeat(k, n_rep, axis=2)
    v = np.repeat(v, n_rep, axis=2)
    s = np.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    i = np.arange(q.shape[1])
    mask = (i[:, None] >= i) & (i[:, None] - i < window)
    s = np.where(mask, s, np.finfo(s.dtype).min)
    s = s - s.max(-1, keepdims=True)
    w = np.exp(s)
    w /= w.sum(-1, keepdims=True)
    return np.einsum("bhts,bshd->bthd", w, v)


def rope(x, theta=10000.0):
    *_, T, d = x.shape
    freqs = 1.0 / theta ** (np.arange(0, d, 2, dtype=x.dtype) / d)
    ang = np.arange(T, dtype=x.dtype)[:, None] * freqs
    x1, x2 = np.array_split(x, 2, axis=-1)
    return np.concatenate(
        [x1 * np.cos(ang) - x2 * np.sin(ang), x2 * np.cos(ang) + x1 * np.sin(ang)], -1
    )


@case(
    x=("T", "D"),
    w_dkv=("D", "C"),
    w_kr=("D", "2*R"),
    w_uk=("C", "H", "E"),
    w_uv=("C", "H", "E"),
    w_q=("D", "H", "E"),
    w_qr=("D", "H", "2*R"),
    w_o=("H", "E", "D"),
)
def mla(x, w_dkv, w_kr, w_uk, w_uv, w_q, w_qr, w_o):
    c = x @ w_dkv
    k_r = rope(x @ w_kr)
    k_c = np.einsum("tc,che->hte", c, w_uk)
    v = np.einsum("tc,che->hte", c, w_uv)
    q_c = np.einsum("td,dhe->hte", x, w_q)
    q_r = rope(np.einsum("td,dhr->htr", x, w_qr))
    scale = 1 / math.sqrt(w_q.shape[-1] + w_qr.shape[-1])
    s = (np.einsum("hte,hse->hts", q_c, k_c) + np.einsum("htr,sr->hts", q_r, k_r)) * scale
    s += np.triu(np.full(s.shape[1:], -1e9), k=1)
    return np.einsum("hts,hse,hed->td", softmax(s, -1), v, w_o)


def rel_shift(x):
    h, t, s = x.shape
    x = np.pad(x, ((0, 0), (0, 0), (1, 0)))
    return x.reshape(h, s + 1, t)[:, 1:].reshape(h, t, s)


@case(q=("H", "T", "D"), k=("H", "T", "D"), r=("H", "T", "D"), u=("H", 1, "D"), w=("H", 1, "D"))
def transformer_xl_scores(q, k, r, u, w):
    ac = (q + u) @ k.transpose(0, 2, 1)
    bd = rel_shift((q + w) @ r.transpose(0, 2, 1))
    s = (ac + bd) / q.shape[-1] ** 0.5
    causal = np.tri(q.shape[1], dtype=bool)
    s = np.where(causal, s, -np.inf)
    return log_softmax(np.where(causal, s, -1e4), axis=-1)


def window_partition(x, ws):
    H, W, C = x.shape
    return x.reshape(H // ws, ws, W // ws, ws, C).transpose(0, 2, 1, 3, 4).reshape(-1, ws * ws, C)


def window_reverse(w, ws, H, W):
    x = w.reshape(H // ws, W // ws, ws, ws, -1)
    return x.transpose(0, 2, 1, 3, 4).reshape(H, W, -1)


@case(x=("2*P", "2*R", "C"), qkv=("C", "3*C"))
def swin_block(x, qkv, ws=2, shift=1):
    H, W, C = x.shape
    xs = np.roll(x, (-shift, -shift), axis=(0, 1))
    win = window_partition(xs, ws)
    q, k, v = np.moveaxis((win @ qkv).reshape(-1, ws * ws, 3, C), 2, 0)
    a = softmax(q @ np.swapaxes(k, 1, 2) * C**-0.5, axis=-1)
    y = window_reverse(a @ v, ws, H, W)
    return x + np.roll(y, (shift, shift), axis=(0, 1))


@case(x=("N", "I"), W=("O", "I"), u=("O",))
def spectral_linear(x, W, u, n_power=1):
    for _ in range(n_power):
        v = W.T @ u
        v /= np.linalg.norm(v) + 1e-12
        u = W @ v
        u /= np.linalg.norm(u) + 1e-12
    sigma = u @ (W @ v)
    return x @ (W / sigma).T


@case(
    logits=("T", "A"),
    actions=("T", int),
    old_logp=("T",),
    values=("T",),
    rewards=("T",),
    done=("T", bool),
)
def ppo_gae(
    logits, actions, old_logp, values, rewards, done, gamma=0.99, lam=0.95, clip=0.2, ent_coef=0.01
):
    T = len(rewards)
    adv = np.zeros(T)
    last = 0.0
    for t in reversed(range(T)):
        nonterm = 1.0 - done[t]
        nxt = values[t + 1] if t < T - 1 else 0.0
        delta = rewards[t] + gamma * nxt * nonterm - values[t]
        adv[t] = last = delta + gamma * lam * nonterm * last
    ret = adv + values
    a = (adv - adv.mean()) / (adv.std() + 1e-8)
    logp_all = log_softmax(logits, axis=-1)
    logp = np.take_along_axis(logp_all, actions[:, None], axis=-1).squeeze(-1)
    ratio = np.exp(logp - old_logp)
    pg = -np.minimum(ratio * a, np.clip(ratio, 1 - clip, 1 + clip) * a).mean()
    ent = -(np.exp(logp_all) * logp_all).sum(-1).mean()
    return pg + 0.5 * ((ret - values) ** 2).mean() - ent_coef * ent


class VTraceReturns(NamedTuple):
    vs: np.ndarray
    pg_advantages: np.ndarray


@case(
    log_rhos=("T", "B"),
    discounts=("T", "B"),
    rewards=("T", "B"),
    values=("T", "B"),
    bootstrap=("B",),
)
def vtrace(log_rhos, discounts, rewards, values, bootstrap, rho_bar=1.0):
    rhos = np.exp(log_rhos)
    clipped = np.minimum(rho_bar, rhos)
    cs = np.minimum(1.0, rhos)
    values_t1 = np.concatenate([values[1:], bootstrap[None]], 0)
    deltas = clipped * (rewards + discounts * values_t1 - values)
    acc = np.zeros_like(bootstrap)
    result = []
    for t in range(values.shape[0] - 1, -1, -1):
        acc = deltas[t] + discounts[t] * cs[t] * acc
        result.append(acc)
    result.reverse()
    vs = np.stack(result) + values
    vs_t1 = np.concatenate([vs[1:], bootstrap[None]], 0)
    pg = clipped * (rewards + discounts * vs_t1 - values)
    return VTraceReturns(vs=vs, pg_advantages=pg)


@case(P=("N", 3), Q=("N", 3))
def kabsch_rmsd(P, Q):
    P = P - P.mean(axis=0)
    Q = Q - Q.mean(axis=0)
    U, S, Vt = np.linalg.svd(P.T @ Q)
    d = np.sign(np.linalg.det(U) * np.linalg.det(Vt))
    corr = np.ones(3)
    corr[-1] = d
    e0 = np.sum(P**2) + np.sum(Q**2)
    return np.sqrt(np.maximum((e0 - 2 * np.sum(S * corr)) / len(P), 1e-12))


@case(x=("N",), y=("N",))
def poly_fit(x, y, degree=2):
    A = np.stack([x**k for k in range(degree + 1)], axis=1)
    c = np.linalg.pinv(A) @ y
    return c, np.polyval(c[::-1], x)


@case(q=("N", 4), t=("N", 3), pts=("N", "P", 3))
def frames_ipa(q, t, pts):
    w, x, y, z = (q / np.linalg.norm(q, axis=-1, keepdims=True)).T
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)
    g = np.einsum("nij,npj->npi", R, pts) + t[:, None]
    d2 = ((g[:, None] - g[None, :]) ** 2).sum((-1, -2))
    return g, softmax(-0.5 * d2, axis=-1)
