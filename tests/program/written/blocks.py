"""Blocks, windows, heads and elements, one after the other."""

import itertools

import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


@case(loops=1, q=(T, D), k=('2 * S', D), v=('2 * S', D))
def flash(q, k, v, block=2):
    n, d = q.shape
    m = np.full((n, 1), -np.inf)
    l = np.zeros((n, 1))
    acc = np.zeros((n, d))
    for j in range(0, k.shape[0], block):
        s = q @ k[j:j + block].T / np.sqrt(d)
        m_new = np.maximum(m, s.max(-1, keepdims=True))
        p = np.exp(s - m_new)
        a = np.exp(m - m_new)
        l = a * l + p.sum(-1, keepdims=True)
        acc = a * acc + p @ v[j:j + block]
        m = m_new
    return acc / l


@case(loops=2, q=('2 * T', D), k=('2 * S', D), v=('2 * S', D))
def flash2(q, k, v, block=2):
    n, d = q.shape
    out = np.zeros((n, d))
    lse = np.zeros(n)
    for i in range(0, n, block):
        qi = q[i:i + block]
        m = np.full(qi.shape[0], -1e+30)
        l = np.zeros(qi.shape[0])
        acc = np.zeros((qi.shape[0], d))
        for j in range(0, k.shape[0], block):
            s = qi @ k[j:j + block].T * d ** (-0.5)
            m_new = np.maximum(m, s.max(1))
            p = np.exp(s - m_new[:, None])
            a = np.exp(m - m_new)
            l = l * a + p.sum(1)
            acc = acc * a[:, None] + p @ v[j:j + block]
            m = m_new
        out[i:i + block] = acc / l[:, None]
        lse[i:i + block] = m + np.log(l)
    return (out, lse)


@case(loops=1, h=('2 * N', D), w=(D, 'V'), y=('2 * N', int))
def chunked_ce(h, w, y, chunk=2):
    loss = 0.0
    for i in range(0, h.shape[0], chunk):
        z = h[i:i + chunk] @ w
        m = z.max(-1, keepdims=True)
        lse = np.log(np.exp(z - m).sum(-1)) + m[:, 0]
        loss += (lse - z[np.arange(z.shape[0]), y[i:i + chunk]]).sum()
    return loss / h.shape[0]


@case(loops=1, q=(T, D), k=(T, D), v=(T, D))
def causal_rows(q, k, v):
    out = []
    for t in range(q.shape[0]):
        s = k[:t + 1] @ q[t]
        p = np.exp(s - s.max())
        p = p / p.sum()
        out.append(p @ v[:t + 1])
    return np.stack(out)


@case(loops=1, q=(T, D), k=(T, D), v=(T, 'E'))
def retention_chunks(q, k, v, C=2, g=0.9):
    S = np.zeros((q.shape[1], v.shape[1]))
    out = []
    for i in range(0, q.shape[0] - q.shape[0] % 1, C):
        qc, kc, vc = (q[i:i + C], k[i:i + C], v[i:i + C])
        out.append(qc @ kc.T @ vc + qc @ S)
        S = g * S + kc.T @ vc
    return np.concatenate(out)


@case(loops=1, x=(N, 'H * D'), w=('H', D, D))
def per_head(x, w):
    h, d, _ = w.shape
    outs = []
    for i in range(h):
        outs.append(x[:, i * d:(i + 1) * d] @ w[i])
    return np.concatenate(outs, axis=-1)


@case(loops=1, x=(N, 'H * D'), w=('H', D, D))
def per_head_store(x, w):
    y = np.zeros_like(x)
    d = w.shape[1]
    for i in range(w.shape[0]):
        y[:, i * d:(i + 1) * d] += x[:, i * d:(i + 1) * d] @ w[i]
    return y


@case(loops=1, x=(N, D), w=('G', D, D))
def moe(x, w):
    g = np.exp(x[:, :1] * np.ones(w.shape[0]))
    g = g / g.sum(-1, keepdims=True)
    out = np.zeros_like(x)
    for e in range(len(w)):
        out += g[:, e:e + 1] * (x @ w[e])
    return out


@case(loops=1, x=(N, 'C', 'L'), w=('O', 'C', 3))
def conv1d(x, w):
    n, c, l = x.shape
    o, _, k = w.shape
    y = np.zeros((n, o, l - k + 1))
    for i in range(l - k + 1):
        y[:, :, i] = np.tensordot(x[:, :, i:i + k], w, axes=([1, 2], [1, 2]))
    return y


@case(loops=2, x=('H', 'W'), k=(3, 3))
def conv2d(x, k):
    h, w = x.shape
    p = k.shape[0] // 2
    xp = np.pad(x, p)
    return np.array([[np.sum(xp[i:i + k.shape[0], j:j + k.shape[1]] * k) for j in range(w)] for i in range(h)])


@case(loops=2, x=('2 * H', '2 * W'))
def pool(x):
    h, w = x.shape
    y = np.zeros((h // 2, w // 2))
    for i in range(h // 2):
        for j in range(w // 2):
            y[i, j] = x[2 * i:2 * i + 2, 2 * j:2 * j + 2].mean()
    return y


@case(loops=2, a=(N, K), b=(K, 'M'))
def mat2(a, b):
    return np.array([[sum((a[i, k] * b[k, j] for k in range(a.shape[1]))) for j in range(b.shape[1])] for i in range(a.shape[0])])


@case(loops=2, x=(N, T), y=(N, T))
def dtw_like(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        acc = x[i, 0]
        for t in range(1, x.shape[1]):
            acc = np.logaddexp(acc, x[i, t] * y[i, t])
        total += acc
    return total / x.shape[0]


@case(loops=2, x=('B', 'L', 'd'), w=('d', 'd'))
def pairs(x, w):
    s = np.zeros((x.shape[0], x.shape[1], x.shape[1]))
    for i, j in itertools.product(range(x.shape[1]), range(x.shape[1])):
        s[:, i, j] = np.einsum('bd,de,be->b', x[:, i], w, x[:, j])
    return s


@case(loops=1, x=(T, D))
def window(x, k=2):
    return np.stack([x[i:i + k].mean(0) for i in range(len(x) - k + 1)])


@case(loops=1, x=(T, D))
def cumulative_two(x):
    c = np.zeros(x.shape)
    for t in range(len(x)):
        c[t:] += x[t]
    return c


@case(loops=1, x=(T, D))
def outer_sum(x):
    s = np.zeros((x.shape[1],) * 2)
    for v in x:
        s += v[:, None] @ v[None, :]
    return s / len(x)


@case(sizes=1, loops=2, x=(N, D))
def triangle(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            total = total + np.exp(-((x[i] - x[j]) ** 2).sum())
    return total
