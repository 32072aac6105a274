"""Kernels, losses and solvers as they are published."""


import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


@case(x=('B', 'C', '2 * H', '2 * W'))
def patches(x, p=2):
    b, c, h, w = x.shape
    return x.reshape(b, c, h // p, p, w // p, p).transpose(0, 2, 4, 1, 3, 5).reshape(b, h // p * (w // p), c * p * p)


@case(x=('B', 'C', 'H', 'W'))
def maxpool_loop(x, k=2):
    b, c, h, w = x.shape
    out = np.full((b, c, h - k + 1, w - k + 1), -np.inf)
    for i in range(k):
        for j in range(k):
            out = np.maximum(out, x[:, :, i:i + h - k + 1, j:j + w - k + 1])
    return out


@case(x=('B', 'C', 'H', 'W'))
def im2col(x, k=3, stride=1, pad=1):
    b, c, h, w = x.shape
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh = (h + 2 * pad - k) // stride + 1
    ow = (w + 2 * pad - k) // stride + 1
    cols = np.zeros((b, c, k, k, oh, ow))
    for i in range(k):
        for j in range(k):
            cols[:, :, i, j] = xp[:, :, i:i + stride * oh:stride, j:j + stride * ow:stride]
    return cols.transpose(0, 4, 5, 1, 2, 3).reshape(b * oh * ow, -1)


@case(x=(N, D))
def bn(x, momentum=0.1, training=True, eps=1e-05):
    if training:
        mu, var = (x.mean(0), x.var(0))
    else:
        mu, var = (0.0, 1.0)
    return (x - mu) / np.sqrt(var + eps)


@case(x=(N, D), y=(N, int))
def ce(x, y, smoothing=0.1):
    n, c = x.shape
    t = np.full((n, c), smoothing / c)
    t[np.arange(n), y] += 1 - smoothing
    lp = x - x.max(1, keepdims=True)
    lp -= np.log(np.exp(lp).sum(1, keepdims=True))
    return -(t * lp).sum() / n


@case(x=('B', T, D), lens=('B', int))
def lengths_mask(x, lens):
    m = np.arange(x.shape[1])[None, :] < lens[:, None] + 1
    return (x * m[..., None]).sum(1) / m.sum(1, keepdims=True)


@case(loops=1, x=('B', T, D), lens=('B', int))
def packed(x, lens):
    h = np.zeros((x.shape[0], x.shape[2]))
    for t in range(x.shape[1]):
        new = np.tanh(h + x[:, t])
        keep = (t < lens)[:, None]
        h = np.where(keep, new, h)
    return h


@case(loops=1, x=(N,), y=('M',))
def dtw(x, y):
    n, m = (len(x), len(y))
    d = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = (x[i - 1] - y[j - 1]) ** 2
            d[i, j] = c - np.log(np.exp(-d[i - 1, j]) + np.exp(-d[i, j - 1]) + np.exp(-d[i - 1, j - 1]))
    return d[n, m]


@case(loops=1, p=('B', D), w=(D, D))
def hmc(p, w, steps=3, eps=0.1):
    q = p * 0
    for _ in range(steps):
        p = p - eps / 2 * q @ w
        q = q + eps * p
        p = p - eps / 2 * q @ w
    return (q, p)


@case(loops=1, x=('T + 2',))
def ar2(x, a=0.5, b=-0.2):
    e = []
    for t in range(2, len(x)):
        e.append(x[t] - a * x[t - 1] - b * x[t - 2])
    return (np.array(e) ** 2).mean()


@case(x=('N', 'D'))
def gram_schmidt(x):
    q = []
    for v in x[:3]:
        for u in q:
            v = v - u @ v * u
        q.append(v / np.linalg.norm(v))
    return np.stack(q)


@case(x=(N,))
def levinson(x):
    out = []
    for k in range(3):
        out.append((x[:x.shape[0] - k] * x[k:]).sum())
    return np.array(out)


@case(x=(N, D))
def matmul_out(x):
    y = np.empty((x.shape[0], x.shape[0]))
    np.matmul(x, x.T, out=y)
    y[np.diag_indices(3)] = 0
    return y


@case(sizes=1, x=(N, D))
def cholesky_loop(x):
    A = x.T @ x + 10 * np.eye(x.shape[1])
    n = A.shape[0]
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j] - (L[i, :j] * L[j, :j]).sum()
            L[i, j] = np.sqrt(s) if i == j else s / L[j, j]
    return L


@case(sizes=1, x=(T, D), w=(D, D))
def tbptt(x, w, k=2):
    h = np.zeros(x.shape[1])
    loss = 0
    for i in range(0, x.shape[0] - 1, k):
        for j in range(k):
            if i + j < x.shape[0]:
                h = np.tanh(w @ h + x[i + j])
        loss = loss + (h ** 2).sum()
    return loss


@case(sizes=1, x=(T, D))
def while_true(x):
    t = 0
    h = x[0]
    while True:
        h = np.tanh(h + x[t])
        t += 1
        if t >= x.shape[0]:
            break
    return h
