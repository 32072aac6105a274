"""Twenty-five that were written as a stranger would; at first 24 were derived and right.

The other was read as one for tensors, since it pads by `mode` in a module that knows PyTorch.
"""

import math

import numpy as np
import scipy.linalg
import scipy.special as sp
from numpy.lib.stride_tricks import sliding_window_view

CASES = {}


def case(**given):
    def add(forward):
        CASES[forward.__name__] = forward, given
        return forward

    return add


@case(x=("T", "H", "2*D"))
def rotary_interleaved(x, base=10000.0):
    t, h, d = x.shape
    inv = base ** (-np.arange(0, d, 2) / d)
    ang = np.outer(np.arange(t), inv)
    c, s = np.cos(ang)[:, None], np.sin(ang)[:, None]
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
    out[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
    return out


@case(q=("T", "D"), k=("T", "D"), v=("T", "E"))
def linear_attention_rnn(q, k, v, eps=1e-6):
    phi = lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    q, k = phi(q), phi(k)
    S = np.zeros((k.shape[1], v.shape[1]))
    z = np.zeros(k.shape[1])
    out = []
    for qt, kt, vt in zip(q, k, v):
        S = S + np.outer(kt, vt)
        z = z + kt
        out.append(qt @ S / (qt @ z + eps))
    return np.stack(out)


@case(x=("N", "D"), wg=("D", "E"), w=("E", "D", "F"))
def moe_topk_capacity(x, wg, w, k=2, capacity=3):
    logits = x @ wg
    N, E = logits.shape
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    idx = np.argsort(-p, axis=-1)[:, :k]
    gate = np.take_along_axis(p, idx, axis=-1)
    gate = gate / gate.sum(-1, keepdims=True)
    onehot = np.eye(E)[idx]                       # N k E
    pos = np.cumsum(onehot.reshape(N * k, E), axis=0).reshape(N, k, E)
    keep = onehot * (pos <= capacity)
    combine = np.einsum("nk,nke->ne", gate, keep)
    h = np.maximum(np.einsum("nd,edf->nef", x, w), 0)
    return np.einsum("ne,nef->nf", combine, h)


@case(z=("N", "D"), y=("N", int))
def supcon(z, y, tau=0.1):
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    s = z @ z.T / tau
    n = len(z)
    off = ~np.eye(n, dtype=bool)
    pos = (y[:, None] == y[None, :]) & off
    s = s - s.max(axis=1, keepdims=True)
    logp = s - np.log((np.exp(s) * off).sum(1, keepdims=True))
    return -((pos * logp).sum(1) / np.maximum(pos.sum(1), 1)).mean()


@case(x=("N", "D"), y=("N", int))
def batch_hard_triplet(x, y, margin=0.5):
    sq = (x ** 2).sum(1)
    d2 = sq[:, None] + sq[None] - 2 * x @ x.T
    d = np.sqrt(np.maximum(d2, 0) + 1e-9)
    same = y[:, None] == y[None]
    hp = np.where(same, d, -np.inf).max(1)
    hn = np.where(same, np.inf, d).min(1)
    loss = np.maximum(hp - hn + margin, 0)
    return np.where(np.isfinite(loss), loss, 0.0).sum() / len(x)


@case(logits=("N", "H", "W"), t=("N", "H", "W"))
def focal_tversky(logits, t, alpha=0.7, gamma=0.75, smooth=1.0):
    p = sp.expit(logits)
    ax = (1, 2)
    tp = (p * t).sum(ax)
    fp = (p * (1 - t)).sum(ax)
    fn = ((1 - p) * t).sum(ax)
    ti = (tp + smooth) / (tp + alpha * fn + (1 - alpha) * fp + smooth)
    return np.mean((1 - ti) ** gamma)


@case(p=("N", 4), g=("N", 4))
def ciou(p, g):
    px1, py1, px2, py2 = p[:, 0], p[:, 1], p[:, 0] + np.exp(p[:, 2]), p[:, 1] + np.exp(p[:, 3])
    gx1, gy1, gx2, gy2 = g[:, 0], g[:, 1], g[:, 0] + np.exp(g[:, 2]), g[:, 1] + np.exp(g[:, 3])
    iw = np.clip(np.minimum(px2, gx2) - np.maximum(px1, gx1), 0, None)
    ih = np.clip(np.minimum(py2, gy2) - np.maximum(py1, gy1), 0, None)
    inter = iw * ih
    union = (px2 - px1) * (py2 - py1) + (gx2 - gx1) * (gy2 - gy1) - inter
    iou = inter / union
    cw = np.maximum(px2, gx2) - np.minimum(px1, gx1)
    ch = np.maximum(py2, gy2) - np.minimum(py1, gy1)
    rho = ((px1 + px2 - gx1 - gx2) ** 2 + (py1 + py2 - gy1 - gy2) ** 2) / 4
    v = 4 / math.pi ** 2 * (np.arctan((gx2 - gx1) / (gy2 - gy1)) - np.arctan((px2 - px1) / (py2 - py1))) ** 2
    alpha = v / (1 - iou + v + 1e-7)
    return (1 - iou + rho / (cw ** 2 + ch ** 2) + alpha * v).mean()


@case(x=("B", "C", "T"), wf=("O", "C", "K"), wg=("O", "C", "K"))
def wavenet_gate(x, wf, wg, dilation=2):
    B, C, T = x.shape
    O, _, K = wf.shape
    pad = (K - 1) * dilation
    xp = np.pad(x, ((0, 0), (0, 0), (pad, 0)))
    f = np.zeros((B, O, T))
    g = np.zeros((B, O, T))
    for k in range(K):
        seg = xp[:, :, k * dilation : k * dilation + T]
        f += np.einsum("oc,bct->bot", wf[:, :, k], seg)
        g += np.einsum("oc,bct->bot", wg[:, :, k], seg)
    return np.tanh(f) * sp.expit(g)


@case(x=("C", "T"), off=("T", "K"), w=("O", "C", "K"))
def deformable_conv1d(x, off, w):
    C, T = x.shape
    K = w.shape[-1]
    base = np.arange(T)[:, None] + np.arange(K) - K // 2
    p = np.clip(base + off, 0, T - 1)
    lo = np.floor(p).astype(int)
    hi = np.minimum(lo + 1, T - 1)
    a = p - lo
    s = x[:, lo] * (1 - a) + x[:, hi] * a
    return np.tensordot(w, s, axes=([1, 2], [0, 2]))


@case(sigma=("R", "S"), rgb=("R", "S", 3), t=("R", "S"))
def volume_render(sigma, rgb, t, L=2, white=True):
    delta = np.concatenate([t[:, 1:] - t[:, :-1], np.full((len(t), 1), 1e3)], axis=-1)
    alpha = 1 - np.exp(-np.maximum(sigma, 0) * delta)
    trans = np.cumprod(np.concatenate([np.ones((len(t), 1)), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    wts = alpha * trans
    c = (wts[..., None] * sp.expit(rgb)).sum(1)
    depth = (wts * t).sum(-1)
    acc = wts.sum(-1)
    if white:
        c = c + (1 - acc)[:, None]
    freq = 2.0 ** np.arange(L)
    enc = np.sin(depth[:, None] * freq)
    return np.concatenate([c, enc], -1)


@case(y=("T", "O"), A=("S", "S"), C=("O", "S"), m0=("S",))
def kalman_loglik(y, A, C, m0, q=0.1, r=0.5):
    S, O = A.shape[0], C.shape[0]
    m, P = m0, np.eye(S)
    ll = 0.0
    for t in range(len(y)):
        m = A @ m
        P = A @ P @ A.T + q * np.eye(S)
        e = y[t] - C @ m
        V = C @ P @ C.T + r * np.eye(O)
        Vi = np.linalg.inv(V)
        K = P @ C.T @ Vi
        ll += -0.5 * (e @ Vi @ e + np.log(np.linalg.det(V)) + O * np.log(2 * np.pi))
        m = m + K @ e
        P = P - K @ C @ P
    return ll


@case(le=("T", "K"), lt=("K", "K"), li=("K",))
def hmm_posteriors(le, lt, li):
    T, K = le.shape
    lt = lt - sp.logsumexp(lt, axis=1, keepdims=True)
    alpha = np.zeros((T, K))
    alpha[0] = li - sp.logsumexp(li) + le[0]
    for t in range(1, T):
        alpha[t] = le[t] + sp.logsumexp(alpha[t - 1][:, None] + lt, axis=0)
    beta = np.zeros((T, K))
    for t in range(T - 2, -1, -1):
        beta[t] = sp.logsumexp(lt + le[t + 1] + beta[t + 1], axis=1)
    g = alpha + beta
    return np.exp(g - sp.logsumexp(g, axis=1, keepdims=True))


@case(x=("N", 2), y=("M", 2))
def sinkhorn_log(x, y, eps=0.3, iters=3):
    C = ((x[:, None] - y[None]) ** 2).sum(-1)
    n, m = C.shape
    f, g = np.zeros(n), np.zeros(m)
    for _ in range(iters):
        f = -eps * sp.logsumexp((g[None, :] - C) / eps - np.log(m), axis=1)
        g = -eps * sp.logsumexp((f[:, None] - C) / eps - np.log(n), axis=0)
    P = np.exp((f[:, None] + g[None] - C) / eps) / (n * m)
    return (P * C).sum()


@case(X=("N", "D"), y=("N",), ls=("D",), sf=(), sn=())
def gp_ard(X, y, ls, sf, sn, jitter=1e-6):
    Xs = X / np.exp(ls)
    d2 = np.sum(Xs ** 2, 1)[:, None] + np.sum(Xs ** 2, 1) - 2 * Xs @ Xs.T
    K = np.exp(2 * sf) * np.exp(-0.5 * d2) + (np.exp(2 * sn) + jitter) * np.eye(len(X))
    L = np.linalg.cholesky(K)
    a = scipy.linalg.solve_triangular(L.T, scipy.linalg.solve_triangular(L, y, lower=True))
    return 0.5 * y @ a + np.log(np.diag(L)).sum() + 0.5 * len(y) * np.log(2 * np.pi)


@case(r=("N",), time=("N",), event=("N", bool))
def cox_breslow(r, time, event):
    order = np.argsort(-time)
    rs = r[order]
    ev = event[order]
    c = np.logaddexp.accumulate(rs)
    return -np.sum((rs - c) * ev) / np.maximum(ev.sum(), 1)


@case(x=("N", "2*D"), w1=("D", "H"), ws=("H", "D"), wt=("H", "D"))
def realnvp(x, w1, ws, wt):
    d = x.shape[1] // 2
    a, b = x[:, :d], x[:, d:]
    h = np.tanh(a @ w1)
    s = np.tanh(h @ ws)
    z = np.concatenate([a, b * np.exp(s) + h @ wt], axis=1)
    logdet = s.sum(1)
    logp = -0.5 * (z ** 2).sum(1) - 0.5 * x.shape[1] * np.log(2 * np.pi) + logdet
    return logp.mean()


@case(h=("V", "F"), al=("F",), ar=("F",), src=("E", int), dst=("E", int))
def gat_edges(h, al, ar, src, dst, slope=0.2):
    n = h.shape[0]
    e = (h @ al)[src] + (h @ ar)[dst]
    e = np.where(e > 0, e, slope * e)
    m = np.full(n, -np.inf)
    np.maximum.at(m, dst, e)
    w = np.exp(e - m[dst])
    den = np.zeros(n)
    np.add.at(den, dst, w)
    out = np.zeros_like(h)
    np.add.at(out, dst, (w / den[dst])[:, None] * h[src])
    return out


@case(u=("I", "D"), W=("I", "O", "E", "D"))
def capsule_routing(u, W, r=3):
    uh = np.einsum("ioed,id->ioe", W, u)
    b = np.zeros(uh.shape[:2])
    for it in range(r):
        c = sp.softmax(b, axis=1)
        s = (c[..., None] * uh).sum(0)
        n2 = (s ** 2).sum(-1, keepdims=True)
        v = n2 / (1 + n2) * s / np.sqrt(n2 + 1e-9)
        if it < r - 1:
            b = b + (uh * v[None]).sum(-1)
    return v


@case(x=("T", "I"), win=("R", "I"), wr=("R", "R"), y=("T", "O"))
def echo_state_ridge(x, win, wr, y, leak=0.3, lam=0.1):
    h = np.zeros(wr.shape[0])
    H = np.empty((len(x), wr.shape[0]))
    for t, xt in enumerate(x):
        h = (1 - leak) * h + leak * np.tanh(win @ xt + wr @ h)
        H[t] = h
    W = np.linalg.solve(H.T @ H + lam * np.identity(H.shape[1]), H.T @ y)
    return np.mean((H @ W - y) ** 2)


@case(A=("S", "S"), B=("S", "U"), x0=("S",))
def lqr_cost(A, B, x0, T=3, rho=1.0):
    Q = np.eye(A.shape[0])
    R = rho * np.eye(B.shape[1])
    P = Q
    Ks = []
    for _ in range(T):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
        Ks.append(K)
    x, cost = x0, 0.0
    for K in reversed(Ks):
        u = -K @ x
        cost = cost + x @ Q @ x + u @ R @ u
        x = A @ x + B @ u
    return cost + x @ Q @ x


@case(u=("T", "X"))
def burgers_residual(u, nu=0.01, dt=0.1, dx=0.2):
    ut = (u[1:, 1:-1] - u[:-1, 1:-1]) / dt
    ux = np.gradient(u, dx, axis=1)[:-1, 1:-1]
    uxx = (u[:-1, 2:] - 2 * u[:-1, 1:-1] + u[:-1, :-2]) / dx ** 2
    return np.mean((ut + u[:-1, 1:-1] * ux - nu * uxx) ** 2)


@case(x=("N", "I"), c=("I", "O", 7))
def kan_bspline(x, c, k=3):
    G = c.shape[-1] - k
    h = 2.0 / G
    grid = np.arange(-k, G + k + 1) * h - 1
    xe = x[..., None]
    B = ((xe >= grid[:-1]) & (xe < grid[1:])).astype(x.dtype)
    for p in range(1, k + 1):
        left = (xe - grid[: -(p + 1)]) / (grid[p:-1] - grid[: -(p + 1)])
        right = (grid[p + 1 :] - xe) / (grid[p + 1 :] - grid[1:-p])
        B = left * B[..., :-1] + right * B[..., 1:]
    silu = x * sp.expit(x)
    return np.einsum("nig,iog->no", B, c) + silu.sum(1)[:, None]


@case(x=("N", 4, "I"), r=("I", "O"), i=("I", "O"), j=("I", "O"), k=("I", "O"))
def quaternion_linear(x, r, i, j, k):
    W = np.block([[r, i, j, k], [-i, r, k, -j], [-j, -k, r, i], [-k, j, -i, r]])
    y = x.reshape(len(x), -1) @ W
    return y.reshape(len(x), 4, -1)


@case(sub=("N", "M"), ins=())
def soft_edit(sub, ins, t=1.0):
    n, m = sub.shape
    d = np.zeros((n + 1, m + 1))
    d[:, 0] = np.arange(n + 1) * ins
    d[0, :] = np.arange(m + 1) * ins
    for i in range(n):
        for j in range(m):
            c = np.stack([d[i, j] + sub[i, j], d[i, j + 1] + ins, d[i + 1, j] + ins])
            d[i + 1, j + 1] = -t * sp.logsumexp(-c / t)
    return d[n, m]


@case(x=("N", "C", "H", "W"), s=("N", "C", 2), w=("C", 3, 3))
def adain_depthwise(x, s, w, eps=1e-5):
    mu = x.mean((2, 3), keepdims=True)
    sd = x.std((2, 3), keepdims=True)
    y = (x - mu) / (sd + eps)
    y = y * s[:, :, :1, None] + s[:, :, 1:, None]
    yp = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="reflect")
    win = sliding_window_view(yp, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,cij->nchw", win, w)
